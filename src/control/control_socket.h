/*
 * SPDX-License-Identifier: Apache-2.0
 * control_socket: the file of the control socket, and the rights of those who connect to it.
 */
#ifndef SLUICE_CONTROL_CONTROL_SOCKET_H
#define SLUICE_CONTROL_CONTROL_SOCKET_H

#include "control/control.h"

/*
 * Listens for those whom the options name, and for no other user. Returns the fd, or a negative errno with a sentence
 * in error. With an fd, error is "", or reports a group that is missing, or one that cannot be admitted.
 */
int control_bind(const struct control_options *o, struct peer_rights *ret, char *error, size_t error_size);

#endif
