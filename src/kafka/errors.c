/*
 * SPDX-License-Identifier: Apache-2.0
 * errors: maps librdkafka's errors to retries and dead letters.
 *
 * An error that is not known to be permanent is retried: a record that waits is not lost.
 */
#include "kafka/client.h"

/* Not in Debian 12's rdkafka.h. */
#define ERR_UNKNOWN_TOPIC_ID ((rd_kafka_resp_err_t)100)

static const struct {
	rd_kafka_resp_err_t err;
	struct kafka_failure failure;
} failures[] = {
	/* The record itself is invalid: a retry would fail again. */
	{ RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, { OUTPUT_NEVER, "msg_size_too_large" } },
	{ RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, { OUTPUT_NEVER, "record_list_too_large" } },
	{ RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, { OUTPUT_NEVER, "invalid_msg_size" } },
	{ RD_KAFKA_RESP_ERR_INVALID_MSG, { OUTPUT_NEVER, "invalid_msg" } },
	{ RD_KAFKA_RESP_ERR_INVALID_RECORD, { OUTPUT_NEVER, "invalid_record" } },
	{ RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, { OUTPUT_NEVER, "invalid_timestamp" } },
	{ RD_KAFKA_RESP_ERR__INVALID_ARG, { OUTPUT_NEVER, "invalid_argument" } },
	/* An administrator has to change this; until then dead letters show the lost records. */
	{ RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, { OUTPUT_NEVER, "topic_authorization_failed" } },
	{ RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, { OUTPUT_NEVER, "cluster_authorization_failed" } },
	{ RD_KAFKA_RESP_ERR_POLICY_VIOLATION, { OUTPUT_NEVER, "policy_violation" } },
	{ RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, { OUTPUT_NEVER, "invalid_topic" } },
	{ RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, { OUTPUT_NEVER, "unsupported_for_message_format" } },
	/* A deleted topic may be created again. */
	{ RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, { OUTPUT_AGAIN, "unknown_topic_or_partition", true } },
	{ RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, { OUTPUT_AGAIN, "unknown_topic_or_partition", true } },
	{ RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, { OUTPUT_AGAIN, "unknown_topic_or_partition", true } },
	{ ERR_UNKNOWN_TOPIC_ID, { OUTPUT_AGAIN, "unknown_topic_or_partition", true } },
	/* No broker accepted the record in time. */
	{ RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, { OUTPUT_AGAIN, "msg_timed_out" } },
	{ RD_KAFKA_RESP_ERR__TIMED_OUT, { OUTPUT_AGAIN, "timed_out" } },
	{ RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, { OUTPUT_AGAIN, "request_timed_out" } },
	{ RD_KAFKA_RESP_ERR__TRANSPORT, { OUTPUT_AGAIN, "transport" } },
	{ RD_KAFKA_RESP_ERR__AUTHENTICATION, { OUTPUT_AGAIN, "authentication" } },
	{ RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, { OUTPUT_AGAIN, "not_enough_replicas" } },
	{ RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, { OUTPUT_AGAIN, "not_enough_replicas" } },
	{ RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, { OUTPUT_AGAIN, "kafka_storage_error" } },
	{ RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, { OUTPUT_AGAIN, "throttling_quota_exceeded" } },
	{ RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, { OUTPUT_AGAIN, "out_of_order_sequence_number" } },
	{ RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, { OUTPUT_AGAIN, "unknown_producer_id" } },
	/* Purged by a recall. */
	{ RD_KAFKA_RESP_ERR__PURGE_QUEUE, { OUTPUT_AGAIN, "recalled" } },
	{ RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, { OUTPUT_AGAIN, "recalled" } },
	{ RD_KAFKA_RESP_ERR__FATAL, { OUTPUT_AGAIN, "fatal" } },
};

struct kafka_failure
kafka_failure(rd_kafka_resp_err_t err)
{
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		if (failures[i].err == err)
			return failures[i].failure;
	}
	return (struct kafka_failure){ OUTPUT_AGAIN, err < 0 ? "library_error" : "broker_error", false };
}
