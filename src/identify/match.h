/*
 * SPDX-License-Identifier: Apache-2.0
 * match: whether a condition holds for a program. Pure functions on model/ruleset.h and model/candidate.h.
 */
#ifndef SLUICE_IDENTIFY_MATCH_H
#define SLUICE_IDENTIFY_MATCH_H

#include "model/ruleset.h"
#include "model/candidate.h"

/* What all rules together may do over one program, one title or one cgroup (base/steps.h): some 2 ms. */
#define RULES_STEPS 100000

/*
 * Returns whether c holds for s. A condition on an unknown property does not hold, nor does its `not`; nor does any
 * once the account of base/steps.h is spent. NULL always holds.
 */
bool match(const struct condition *c, const struct candidate *s);

/*
 * Returns whether the program is excluded. is_inside: it descends from a program that an include rule
 * selected. *ret_rule (may be NULL) is the rule that decided: an exclude rule that holds, else an
 * include rule that does, else NULL; a program without a rule is excluded only because there are
 * include rules and none holds. One with which the account of base/steps.h is spent is not excluded, so that no program
 * hides by its arguments. *ret_inside (may be NULL): the program's children are inside.
 */
bool follow_excludes(const struct follow_rules *r, const struct candidate *s, bool is_inside,
    const struct follow_rule **ret_rule, bool *ret_inside);

/*
 * Returns the first exclude rule whose conditions hold for a program that the rule does not trust, so that it is not
 * excluded by it; NULL: there is none. Reads all rules: for explanations.
 */
const struct follow_rule *follow_distrusts(const struct follow_rules *r, const struct candidate *s);

#endif
