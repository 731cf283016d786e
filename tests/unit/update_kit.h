/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update_kit: a list of checksums, and what minisign 0.11 made of it with two keys that were made for these tests, and
 * whose secret parts no longer exist. The integration test makes new ones with the minisign that is installed.
 */
#ifndef SLUICE_TESTS_UNIT_UPDATE_KIT_H
#define SLUICE_TESTS_UNIT_UPDATE_KIT_H

#define SUMS_X86 "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  sluice-1.2.3-linux-x86_64\n"
#define SUMS_ARM "a1fce4363854ff888cff4b8e7875d600c2682390412a8cf79b37d0b11148b0fa  sluice-1.2.3-linux-aarch64\n"
#define SUMS SUMS_X86 SUMS_ARM

#define KEY_COMMENT "untrusted comment: minisign public key 5CC683D2DA9F7FB2\n"
#define KEY_LINE "RWSyf5/a0oPGXHGtSNbrf5z/J75n2AR5m3KImXtKo0O6kM175taIzunz"
#define KEY KEY_COMMENT KEY_LINE "\n"
#define OTHER_KEY                                                       \
	"untrusted comment: minisign public key F49EDFD5855530F9\n"     \
	"RWT5MFWF1d+e9DC0RSh0fqS9S/Rv8y8rD/DywVvFaM47ywxmciWxNlxm\n"

#define UNTRUSTED_LINE "untrusted comment: a test's signature\n"
#define SIGNATURE_LINE "RUSyf5/a0oPGXM901UViNuWvODogERzp7trOFQgQKPgWNC0CkK+NExPuEIjl+Dq9xnSvZxQ8zmPtIcGnXDNTJtejKDfF7flPvAI=\n"
#define TRUSTED_LINE "trusted comment: sluice 1.2.3\n"
#define GLOBAL_LINE "X7sUJJ7/iPzb7EQSfUju2hvDKZP5Fy7Xn1mWSV6YO/l7qHnUm0rmUR4mLkdcVJ5FNsmr3BME8T3lI86LWwdqCA=="
#define SIGNATURE UNTRUSTED_LINE SIGNATURE_LINE TRUSTED_LINE GLOBAL_LINE "\n"

/* By the same key, over the file itself (minisign -l). */
#define FORMER_SIGNATURE                                                                                              \
	UNTRUSTED_LINE                                                                                                \
	"RWSyf5/a0oPGXNefFKhtg1iiqoCMeZ4SRNpfUNBVCe3UoflOBbIMRlOPKOdygCY2G9isAJCyO+jycGMWaw3YL6D8u/tTyuXVMQQ=\n"      \
	TRUSTED_LINE "C4pUUMu2FxjTK5I1cWE1LruNOcZuI5aHnntyBNQ/CQTkUt3AxzyFXsdXa+M/v/Ie06xaiqigYpeufBXdBGqSBQ==\n"

/* By the other key. */
#define OTHER_SIGNATURE                                                                                               \
	UNTRUSTED_LINE                                                                                                \
	"RUT5MFWF1d+e9CSp8n+TXWosBXsS5llmg6Ob2Oqtsyha6evskMBUyuFWM4EcAgIxw8zdKPU5SraNCowYCzOyVPwrC3BpfHpc+Qw=\n"      \
	TRUSTED_LINE "KGPrczEH36iVtG5DKLF19CioS/2vTw2mqSLV5d4cpu14jSdwxwrtlmo3lpk7tlXT6oa62Rq55h3OoMbpKMM5Dg==\n"

#endif
