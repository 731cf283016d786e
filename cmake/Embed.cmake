# SPDX-License-Identifier: Apache-2.0
# Puts the text of every schema into the binary: gen/schemas.c, read through stream/schema.h.
file(GLOB SCHEMA_FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/schemas/avro/*.avsc)
set(SCHEMA_SOURCE ${CMAKE_BINARY_DIR}/gen/schemas.c)
add_custom_command(OUTPUT ${SCHEMA_SOURCE}
	COMMAND ${CMAKE_COMMAND} -DOUT=${SCHEMA_SOURCE} "-DFILES=${SCHEMA_FILES}"
		-P ${CMAKE_SOURCE_DIR}/cmake/EmbedSchemas.cmake
	DEPENDS ${SCHEMA_FILES} ${CMAKE_SOURCE_DIR}/cmake/EmbedSchemas.cmake
	COMMENT "Embedding schemas" VERBATIM)
