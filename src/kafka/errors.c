/*
 * SPDX-License-Identifier: Apache-2.0
 * errors: which failures pass, and which never will.
 *
 * Whatever is not known to be for good is tried again: a record that waits is not lost.
 */
#include "kafka/client.h"

/* Newer than Debian 12's rdkafka.h. */
#define ERR_UNKNOWN_TOPIC_ID ((rd_kafka_resp_err_t)100)

static const struct {
	rd_kafka_resp_err_t err;
	struct kafka_failure failure;
} failures[] = {
	/* The record itself is at fault, and would be the next time. */
	{ RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, { OUTLET_NEVER, "msg_size_too_large" } },
	{ RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, { OUTLET_NEVER, "record_list_too_large" } },
	{ RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, { OUTLET_NEVER, "invalid_msg_size" } },
	{ RD_KAFKA_RESP_ERR_INVALID_MSG, { OUTLET_NEVER, "invalid_msg" } },
	{ RD_KAFKA_RESP_ERR_INVALID_RECORD, { OUTLET_NEVER, "invalid_record" } },
	{ RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, { OUTLET_NEVER, "invalid_timestamp" } },
	{ RD_KAFKA_RESP_ERR__INVALID_ARG, { OUTLET_NEVER, "invalid_argument" } },
	/* A person has to grant it; until then the letters say what is missed. */
	{ RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, { OUTLET_NEVER, "topic_authorization_failed" } },
	{ RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, { OUTLET_NEVER, "cluster_authorization_failed" } },
	{ RD_KAFKA_RESP_ERR_POLICY_VIOLATION, { OUTLET_NEVER, "policy_violation" } },
	{ RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, { OUTLET_NEVER, "invalid_topic" } },
	{ RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, { OUTLET_NEVER, "unsupported_for_message_format" } },
	/* A topic that was deleted may be made again. */
	{ RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, { OUTLET_AGAIN, "unknown_topic_or_partition", true } },
	{ RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, { OUTLET_AGAIN, "unknown_topic_or_partition", true } },
	{ RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, { OUTLET_AGAIN, "unknown_topic_or_partition", true } },
	{ ERR_UNKNOWN_TOPIC_ID, { OUTLET_AGAIN, "unknown_topic_or_partition", true } },
	/* No broker took it in time. */
	{ RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, { OUTLET_AGAIN, "msg_timed_out" } },
	{ RD_KAFKA_RESP_ERR__TIMED_OUT, { OUTLET_AGAIN, "timed_out" } },
	{ RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, { OUTLET_AGAIN, "request_timed_out" } },
	{ RD_KAFKA_RESP_ERR__TRANSPORT, { OUTLET_AGAIN, "transport" } },
	{ RD_KAFKA_RESP_ERR__AUTHENTICATION, { OUTLET_AGAIN, "authentication" } },
	{ RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, { OUTLET_AGAIN, "not_enough_replicas" } },
	{ RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, { OUTLET_AGAIN, "not_enough_replicas" } },
	{ RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, { OUTLET_AGAIN, "kafka_storage_error" } },
	{ RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, { OUTLET_AGAIN, "throttling_quota_exceeded" } },
	{ RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, { OUTLET_AGAIN, "out_of_order_sequence_number" } },
	{ RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, { OUTLET_AGAIN, "unknown_producer_id" } },
	/* Taken back by us. */
	{ RD_KAFKA_RESP_ERR__PURGE_QUEUE, { OUTLET_AGAIN, "given_back" } },
	{ RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, { OUTLET_AGAIN, "given_back" } },
	{ RD_KAFKA_RESP_ERR__FATAL, { OUTLET_AGAIN, "fatal" } },
};

struct kafka_failure
kafka_failure(rd_kafka_resp_err_t err)
{
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		if (failures[i].err == err)
			return failures[i].failure;
	}
	return (struct kafka_failure){ OUTLET_AGAIN, err < 0 ? "library_error" : "broker_error", false };
}
