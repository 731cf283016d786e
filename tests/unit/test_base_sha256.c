/* SPDX-License-Identifier: Apache-2.0 */
/* sha256: the examples of FIPS 180-4, at every edge of its blocks, in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/sha256.h"

static void
assert_hash(const void *data, size_t len, size_t piece, const char *want)
{
	uint8_t out[SHA256_SIZE];
	char hex[2 * SHA256_SIZE + 1];
	const char *p = data;
	struct sha256 h;

	sha256_init(&h);
	for (size_t at = 0; at < len; at += piece)
		sha256_add(&h, p + at, len - at < piece ? len - at : piece);
	sha256_done(&h, out);
	for (size_t i = 0; i < SHA256_SIZE; i++)
		snprintf(hex + 2 * i, 3, "%02x", out[i]);
	assert_string_equal(hex, want);
}

static void
the_standards_examples_hold(void **state)
{
	static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

	(void)state;
	assert_hash("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_hash("abc", 3, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_hash(two_blocks, 56, 56, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	assert_hash(two_blocks, 56, 5, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

/* Where the length just fits behind the text, and where it does not. */
static void
every_edge_of_a_block_is_right(void **state)
{
	static const struct {
		size_t n;
		const char *hash;
	} rows[] = {
		{ 1, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" },
		{ 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
		{ 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
		{ 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34" },
		{ 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
		{ 65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0" },
		{ 119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb" },
		{ 120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c" },
		{ 127, "c57e9278af78fa3cab38667bef4ce29d783787a2f731d4e12200270f0c32320a" },
		{ 128, "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e" },
		{ 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
	};
	static char text[1000000];

	(void)state;
	memset(text, 'a', sizeof(text));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_hash(text, rows[i].n, rows[i].n, rows[i].hash);
		assert_hash(text, rows[i].n, 61, rows[i].hash);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_standards_examples_hold),
		cmocka_unit_test(every_edge_of_a_block_is_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
