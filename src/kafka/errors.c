/*
 * SPDX-License-Identifier: Apache-2.0
 * errors: maps librdkafka's errors to what is done about them.
 *
 * An error that is not known to be the record's own is retried: a record that waits is not lost. What an administrator
 * has to change, such as rights, makes the records of that topic wait until it is changed.
 */
#include "kafka/client.h"

/* Not in Debian 12's rdkafka.h. */
#define ERR_UNKNOWN_TOPIC_ID ((rd_kafka_resp_err_t)100)
#define ERR_INVALID_DIFFERENT_RECORD ((rd_kafka_resp_err_t)-138)

static const struct {
	rd_kafka_resp_err_t err;
	struct kafka_failure failure;
} failures[] = {
	{ RD_KAFKA_RESP_ERR__INVALID_ARG, { KAFKA_RECORD_AT_FAULT, "invalid_argument" } },
	/* Brokers judge batches, librdkafka a message. */
	{ RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, { KAFKA_BATCH_TOO_LARGE, "msg_size_too_large" } },
	{ RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, { KAFKA_BATCH_TOO_LARGE, "record_list_too_large" } },
	{ RD_KAFKA_RESP_ERR_INVALID_RECORD, { KAFKA_BATCH_REFUSED, "invalid_record" } },
	{ RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, { KAFKA_TIME_REFUSED, "invalid_timestamp" } },
	/* Another record of the batch is at fault. */
	{ ERR_INVALID_DIFFERENT_RECORD, { KAFKA_PASSES, "batch_refused" } },
	/* An administrator has to change this. */
	{ RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, { KAFKA_TOPIC_WAITS, "topic_authorization_failed" } },
	{ RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, { KAFKA_TOPIC_WAITS, "cluster_authorization_failed" } },
	{ RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, { KAFKA_TOPIC_WAITS, "group_authorization_failed" } },
	{ RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
	    { KAFKA_TOPIC_WAITS, "transactional_id_authorization_failed" } },
	{ RD_KAFKA_RESP_ERR_POLICY_VIOLATION, { KAFKA_TOPIC_WAITS, "policy_violation" } },
	{ RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, { KAFKA_TOPIC_WAITS, "invalid_topic" } },
	{ RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT,
	    { KAFKA_TOPIC_WAITS, "unsupported_for_message_format" } },
	{ RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE, { KAFKA_TOPIC_WAITS, "unsupported_compression_type" } },
	{ RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS, { KAFKA_TOPIC_WAITS, "invalid_required_acks" } },
	/* A deleted topic may be created again. */
	{ RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, { KAFKA_TOPIC_GONE, "unknown_topic_or_partition" } },
	{ RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, { KAFKA_TOPIC_GONE, "unknown_topic_or_partition" } },
	{ RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, { KAFKA_TOPIC_GONE, "unknown_topic_or_partition" } },
	{ ERR_UNKNOWN_TOPIC_ID, { KAFKA_TOPIC_GONE, "unknown_topic_or_partition" } },
	/* No broker accepted the record in time, or it was damaged on its way. */
	{ RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, { KAFKA_PASSES, "msg_timed_out" } },
	{ RD_KAFKA_RESP_ERR__TIMED_OUT, { KAFKA_PASSES, "timed_out" } },
	{ RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, { KAFKA_PASSES, "request_timed_out" } },
	{ RD_KAFKA_RESP_ERR__TRANSPORT, { KAFKA_PASSES, "transport" } },
	{ RD_KAFKA_RESP_ERR__AUTHENTICATION, { KAFKA_PASSES, "authentication" } },
	{ RD_KAFKA_RESP_ERR_INVALID_MSG, { KAFKA_PASSES, "corrupt_message" } },
	{ RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, { KAFKA_PASSES, "not_enough_replicas" } },
	{ RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, { KAFKA_PASSES, "not_enough_replicas" } },
	{ RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, { KAFKA_PASSES, "kafka_storage_error" } },
	{ RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, { KAFKA_PASSES, "throttling_quota_exceeded" } },
	{ RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, { KAFKA_PASSES, "out_of_order_sequence_number" } },
	{ RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, { KAFKA_PASSES, "unknown_producer_id" } },
	/* Purged by a recall. */
	{ RD_KAFKA_RESP_ERR__PURGE_QUEUE, { KAFKA_PASSES, "recalled" } },
	{ RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, { KAFKA_PASSES, "recalled" } },
	{ RD_KAFKA_RESP_ERR__FATAL, { KAFKA_PASSES, "fatal" } },
};

struct kafka_failure
kafka_failure(rd_kafka_resp_err_t err)
{
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		if (failures[i].err == err)
			return failures[i].failure;
	}
	return (struct kafka_failure){ KAFKA_PASSES, err < 0 ? "library_error" : "broker_error" };
}
