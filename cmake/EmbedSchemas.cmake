# SPDX-License-Identifier: Apache-2.0
# Script: writes OUT with one { file name, text, length } row for each of FILES. Bytes are written as
# characters in hex: a string literal of that length would need splitting and escaping.
set(body "")
set(rows "")
set(i 0)
foreach(path IN LISTS FILES)
	get_filename_component(name ${path} NAME_WE)
	file(READ ${path} hex HEX)
	string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
	string(REGEX REPLACE "('.x..','.x..','.x..','.x..','.x..','.x..','.x..','.x..','.x..','.x..','.x..','.x..','.x..','.x..','.x..','.x..',)" "\\1\n" bytes "${bytes}")
	string(APPEND body "static const char text_${i}[] = {\n${bytes}0\n};\n")
	string(APPEND rows "\t{ \"${name}\", text_${i}, sizeof(text_${i}) - 1 },\n")
	math(EXPR i "${i} + 1")
endforeach()
file(WRITE ${OUT} "/* Generated from schemas/avro. */\n#include \"codec/schema.h\"\n\n${body}\nconst struct schema_text schema_texts[] = {\n${rows}\t{ 0 },\n};\n")
