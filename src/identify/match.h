/*
 * SPDX-License-Identifier: Apache-2.0
 * match: does a condition hold for a program? Pure functions on model/ruleset.h and model/subject.h.
 */
#ifndef SLUICE_IDENTIFY_MATCH_H
#define SLUICE_IDENTIFY_MATCH_H

#include "model/ruleset.h"
#include "model/subject.h"

/* What is unknown of the subject makes no condition hold. NULL holds. */
bool match(const struct condition *c, const struct subject *s);

/*
 * Is the program left out? is_inside: it descends from one that an include rule took in. *ret_rule
 * (may be NULL) is the rule that decided: an exclude that holds, else an include that does; NULL if
 * none: then it is left out only because there are include rules and none holds. *ret_inside (may
 * be NULL): its children are inside.
 */
bool follow_excludes(const struct follow_rules *r, const struct subject *s, bool is_inside,
    const struct follow_rule **ret_rule, bool *ret_inside);

#endif
