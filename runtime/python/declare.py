#!/usr/bin/env python3
"""Writes the Python package's declarations of C, tandem/_declared.py, from the public headers.

    declare.py INCLUDE-FOLDER            prints the module
    declare.py INCLUDE-FOLDER --check    prints a C program that prints what tests/python compares with it

The structs, enumerators and functions that the package uses are named below; their members and arguments are read from
the headers, so a header that changes changes the package. A name that the headers do not have ends this program.
"""
import pathlib
import re
import sys

STRUCTS = {  # and the macro that initialises one; "": there is none
    "tdm_error": "", "tdm_host": "", "tdm_writer": "TDM_WRITER_INIT", "tdm_buffer": "TDM_BUFFER_INIT",
    "tdm_input_info": "TDM_INPUT_INFO_INIT", "tdm_input_array": "",
    "tdm_source_rows": "", "tdm_source": "TDM_SOURCE_INIT", "tdm_fault": "", "tdm_phase_ms": "", "tdm_event": "",
    "tdm_run_options": "TDM_RUN_OPTIONS_INIT", "tdm_run_state": "", "tdm_scores": "TDM_SCORES_INIT",
    "tdm_tensor_info": "", "tdm_model_options": "TDM_MODEL_OPTIONS_INIT", "tdm_model_info": "TDM_MODEL_INFO_INIT", "tdm_target": "TDM_TARGET_INIT",
    "tdm_launch_facts": "", "tdm_pass": "TDM_PASS_INIT", "tdm_outputs": "TDM_OUTPUTS_INIT", "tdm_hosts_options": "TDM_HOSTS_OPTIONS_INIT"}
ENUMS = ["tdm_event_kind", "tdm_input", "tdm_log_level", "tdm_config_form", "tdm_launch_source", "tdm_model_precision"]
FUNCTIONS = """
tdm_version tdm_host_default tdm_error_last tdm_error_message tdm_free tdm_buffer_free tdm_buffer_write
tdm_config_open tdm_config_parse tdm_config_free tdm_config_override tdm_config_override_text tdm_config_predicts
tdm_config_check tdm_config_fault_count tdm_config_fault tdm_config_faults tdm_config_job tdm_config_graph
tdm_config_print tdm_config_get tdm_config_source tdm_job_has_labels tdm_job_predicts tdm_graph_shape tdm_graph_output_width
tdm_graph_input_count tdm_graph_get_input tdm_model_input_count tdm_model_get_input tdm_run_predict_inputs
tdm_model_predict_inputs tdm_config_starter_onnx
tdm_run_open tdm_run_close tdm_run_train tdm_run_step tdm_run_request_stop tdm_run_set_lr tdm_run_get_state
tdm_run_evaluate_scores tdm_run_predict_as tdm_run_output_width tdm_run_input_width tdm_run_eval_count
tdm_run_read_picture tdm_run_decode_picture tdm_run_class_name tdm_run_tensor_count tdm_run_tensor tdm_run_read
tdm_run_write tdm_run_optimizer_count tdm_run_optimizer_tensor tdm_run_read_optimizer tdm_run_read_gradient
tdm_run_forward tdm_run_outputs tdm_run_backward tdm_run_update tdm_run_skip_update tdm_run_write_gradient
tdm_run_save tdm_run_load tdm_run_save_to tdm_run_load_memory tdm_run_set_property tdm_run_property
tdm_run_property_key tdm_run_print tdm_launch_create tdm_launch_abort tdm_launch_from_env tdm_launch_meet
tdm_comm_open_hosts tdm_comm_close
tdm_model_open tdm_model_open_memory tdm_model_close tdm_model_get_info tdm_model_class_name tdm_model_target tdm_model_column tdm_model_read_row
tdm_model_property
tdm_model_property_key tdm_model_predict tdm_model_read_picture tdm_model_decode_picture tdm_model_export
tdm_model_export_onnx tdm_run_export_to tdm_run_export_onnx_to
""".split()
HEADERS = "status host source writer sys/field job graph config parts tandem comm model".split()
PLAIN = {"int": "c_int", "unsigned": "c_uint", "int64_t": "c_int64", "uint32_t": "c_uint32", "size_t": "c_size_t",
         "double": "c_double", "float": "c_float", "bool": "c_bool", "char": "c_char", "tdm_status": "c_int",
         "tdm_value": "c_int32"}


def fail(text):
    sys.exit(f"declare.py: {text}")


class Headers:
    def __init__(self, folder):
        raw = "\n".join((pathlib.Path(folder) / "tandem" / f"{name}.h").read_text() for name in HEADERS)
        raw = re.sub(r"/\*.*?\*/", " ", raw, flags=re.S)
        self.macros = dict(re.findall(r"#define (TDM_\w+_INIT)\s*(?:\\\n)?\s*\{((?:\\\n|.)*)\}", raw))
        self.statuses = re.findall(r'X\((\w+), (\d+), "([^"]*)"\)', raw)
        self.text = re.sub(r"^[ \t]*#(?:\\\n|.)*$", "", raw, flags=re.M)
        found = re.findall(r"typedef enum \w+ \{([^{}]*)\} (\w+);", self.text)
        self.enums = {name: body for body, name in found}
        self.constants = {}
        for body in [*self.enums.values(), *re.findall(r"^enum \{([^{}]*)\};", self.text, re.M)]:
            self.constants.update(enumerators(body))

    def struct(self, name):
        found = re.search(rf"typedef struct {name} \{{(.*?)\n\}} {name};", self.text, re.S)
        return members(found[1]) if found else fail(f"the headers have no struct {name}")

    def initial(self, name):
        """{member: value} of what the macro of a struct sets, but for its size and zeros."""
        if not STRUCTS[name]:
            return {}
        text = self.macros.get(STRUCTS[name]) or fail(f"the headers have no macro {STRUCTS[name]}")
        values = [value.strip(" \\\n") for value in re.split(r",(?![^{]*\})", text)]
        pairs = zip([member for _, member, _ in self.struct(name)], values)
        return {member: value for member, value in pairs if re.fullmatch(r'-?[1-9]\d*|".*"', value)}

    def function(self, name):
        found = re.search(rf"TDM_API ([^;()]*?)\b{name}\(([^;]*)\);", self.text)
        return (found[1].strip(), arguments(found[2])) if found else fail(f"the headers have no function {name}")

    def plain(self, kind):
        """The type of ctypes for a type that is no pointer."""
        kind = kind.replace("const ", "").replace("enum ", "").replace("struct ", "").strip()
        if kind in self.enums:
            return "c_int"
        if kind in PLAIN:
            return PLAIN[kind]
        return kind if kind in STRUCTS else fail(f"no type is known for '{kind}'")

    def type(self, kind, typed=False):
        """typed: pointers to structs are pointers to structs, as arguments of callbacks and results need."""
        stars, target = kind.count("*"), kind.replace("*", "").replace("const ", "").strip()
        if stars == 0:
            return self.plain(kind)
        if stars == 1 and target == "char":
            return "c_char_p" if "const" in kind else "c_void_p"
        return f"POINTER({target})" if typed and stars == 1 and target in STRUCTS else "c_void_p"


def enumerators(body):
    out, value = {}, -1
    for item in filter(None, (part.strip() for part in body.split(","))):
        name, _, given = (word.strip() for word in item.partition("="))
        value = int(eval(given, {})) if re.fullmatch(r"[\d\s<]+", given) else value + 1  # 1 << 20
        out[name] = value
    return out


def members(body):
    """[(type, name, dimensions)]; the type of a pointer to a function is (result, arguments), of an unnamed struct a
    list."""
    out = []
    while body.strip():
        inner = re.match(r"\s*struct \{(.*?)\}\s*(\w+)((?:\[\w+\])*);", body, re.S)
        function = re.match(r"\s*([\w\s*]+?)\(\*(\w+)\)\(([^;]*)\);", body)
        if inner:
            out.append((members(inner[1]), inner[2], re.findall(r"\[(\w+)\]", inner[3])))
        elif function:
            out.append(((function[1].strip(), arguments(function[3])), function[2], []))
        else:
            line = body.split(";", 1)[0]
            first, *others = (part.strip() for part in line.split(","))
            base, name = re.match(r"([\w\s*]*?)(\**\s*\w+(?:\[\w+\])*)$", first, re.S).groups()
            for part in [name, *others]:
                stars, word, sizes = re.match(r"(\**)\s*(\w+)((?:\[\w+\])*)$", part).groups()
                out.append((" ".join(f"{base}{stars}".split()), word, re.findall(r"\[(\w+)\]", sizes)))
        body = body[(inner or function).end():] if inner or function else body.split(";", 1)[1]
    return out


def arguments(text):
    """The types of `const char *path, int rows`."""
    text = " ".join(text.split())
    if text == "void":
        return []
    return [re.sub(r"(\w+)$", "", part.strip()) if "(" not in part else "void *"
            for part in re.split(r",(?![^()]*\))", text)]


def write_struct(headers, name, fields, out):
    rows = []
    for kind, member, sizes in fields:
        if isinstance(kind, list):
            write_struct(headers, f"{name}_{member}", kind, out)
            text = f"{name}_{member}"
        elif isinstance(kind, tuple):
            result, given = kind
            types = ["None" if result == "void" else headers.type(result), *(headers.type(one, True) for one in given)]
            out.append(f"{name}_{member} = CFUNCTYPE({', '.join(types)})\n")
            text = f"{name}_{member}"
        else:
            text = headers.type(kind)
        for size in reversed(sizes):
            text += f" * {headers.constants.get(size, size)}"
        rows.append(f'        ("{member}", {text}),')
    out.append("\n".join([f"class {name}(Structure):", "    _fields_ = [", *rows, "    ]", ""]))


def declarations(headers):
    out = ['"""What the headers of tandem declare. Written by runtime/python/declare.py, not by hand."""',
           "from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_float, c_int,",
           "                    c_int32, c_int64, c_size_t, c_uint, c_uint32, c_void_p)", ""]
    out += ["STATUSES = {", *(f"    {number}: {name, text}," for name, number, text in headers.statuses), "}"]
    for enum in ENUMS:
        if enum not in headers.enums:
            fail(f"the headers have no enum {enum}")
        out += [f"{name} = {value}" for name, value in enumerators(headers.enums[enum]).items()]
    out.append("")
    for name in STRUCTS:
        write_struct(headers, name, headers.struct(name), out)
    out.append("INITIAL = {  # what the INIT macros set, but for sizes and zeros")
    for name in STRUCTS:
        given = ", ".join(f'"{member}": {"b" if value[0] == chr(34) else ""}{value}'
                          for member, value in headers.initial(name).items())
        out += [f"    {name}: {{{given}}},"] if given else []
    out += ["}", ""]
    out.append("FUNCTIONS = {  # name: (result, arguments)")
    for name in FUNCTIONS:
        result, given = headers.function(name)
        shown = "None" if result == "void" else headers.type(result, True)
        out.append(f'    "{name}": ({shown}, [{", ".join(headers.type(one) for one in given)}]),')
    return "\n".join([*out, "}", ""])


def check(headers):
    """A program that prints each struct's size, its members' offsets and sizes, and the bytes of its INIT macro."""
    out = ["#include <stddef.h>", "#include <stdio.h>"]
    out += [f"#include <tandem/{name}.h>" for name in HEADERS]
    out.append("int main(void) {")
    for name, macro in STRUCTS.items():
        out.append(f'    printf("{name} %zu\\n", sizeof({name}));')
        for _, member, _ in headers.struct(name):
            numbers = f"offsetof({name}, {member}), sizeof((({name} *)0)->{member})"
            out.append(f'    printf("{name}.{member} %zu %zu\\n", {numbers});')
        if macro:
            out.append(f"    static const {name} {name}_init = {macro};")
            out.append(f'    printf("{macro} ");\n    for (size_t i = 0; i < sizeof {name}_init; i++)'
                       f' printf("%02x", ((const unsigned char *)&{name}_init)[i]);\n    printf("\\n");')
    for enum in ENUMS:
        out += [f'    printf("{name} %d\\n", (int){name});' for name in enumerators(headers.enums[enum])]
    return "\n".join([*out, "    return 0;", "}", ""])


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    print((check if sys.argv[2:] == ["--check"] else declarations)(Headers(sys.argv[1])), end="")
