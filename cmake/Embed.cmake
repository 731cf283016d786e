# SPDX-License-Identifier: Apache-2.0
# Puts texts into the binary, each kind as a table of { file name, text, length }:
# schemas/avro/*.avsc as gen/schemas.c, read through codec/schema.h, and
# config/rules.d/*.yaml as gen/rules.c, read through rules/rules.h.

# embed(OUT HEADER STRUCT TABLE NAMES FOLDER PATTERN): NAMES is STEM (program) or FULL (exclude.yaml).
function(embed out header struct table names folder pattern)
	file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/${pattern})
	list(SORT files)
	add_custom_command(OUTPUT ${out}
		COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DHEADER=${header} -DSTRUCT=${struct} -DTABLE=${table}
			-DNAMES=${names} -DFOLDER=${folder} "-DFILES=${files}" -P ${CMAKE_SOURCE_DIR}/cmake/EmbedTexts.cmake
		DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/EmbedTexts.cmake
		COMMENT "Embedding ${folder}" VERBATIM)
endfunction()

set(SCHEMA_SOURCE ${CMAKE_BINARY_DIR}/gen/schemas.c)
embed(${SCHEMA_SOURCE} codec/schema.h schema_text schema_texts STEM schemas/avro *.avsc)
set(RULES_SOURCE ${CMAKE_BINARY_DIR}/gen/rules.c)
embed(${RULES_SOURCE} rules/rules.h rules_text rules_texts_shipped FULL config/rules.d *.yaml)
