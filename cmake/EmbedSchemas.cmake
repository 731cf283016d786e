# SPDX-License-Identifier: Apache-2.0
# Script: writes OUT with one { file name, text } row for each of FILES. Bytes are written as hex:
# a string literal of that length would need splitting and escaping.
set(body "")
set(rows "")
foreach(path IN LISTS FILES)
	get_filename_component(name ${path} NAME_WE)
	file(READ ${path} hex HEX)
	string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
	string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
	string(APPEND body "static const char text_${name}[] = {\n${bytes}0x00\n};\n")
	string(APPEND rows "\t{ \"${name}\", text_${name}, sizeof(text_${name}) - 1 },\n")
endforeach()
file(WRITE ${OUT} "/* Generated from schemas/avro. */\n#include \"stream/schema.h\"\n\n${body}\nconst struct schema_text schema_texts[] = {\n${rows}\t{ 0 },\n};\n")
