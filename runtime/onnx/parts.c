/* The messages of an ONNX file: nodes with their attributes, numbers, inputs and outputs. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/onnx/fields.h"
#include "runtime/onnx/file.h"

bool tdm__onnx_count(tdm_onnx_file *file, tdm_wire_in *in, uint64_t at, size_t more) {
    if (more > TDM_ONNX_PARTS - file->parts) return tdm__wire_fail(in, at, "the model has more parts than any");
    file->parts += more;
    return true;
}

bool tdm__onnx_text(tdm_onnx_file *file, tdm_wire_in *in, const tdm_wire_field *field, const char **out) {
    return tdm__onnx_count(file, in, field->begin, 1) && tdm__wire_text_of(in, field, &file->zone, TDM_ONNX_NAME, out);
}

static bool take(tdm_onnx_file *file, tdm_wire_in *in, void *out, size_t count, size_t bytes) {
    if (in->status == TDM_OK) in->status = tdm__zone_new_at(&file->zone, out, count, bytes);
    return in->status == TDM_OK;
}

/* How many fields of this number a message has. */
static size_t count_fields(tdm_wire_in *in, tdm_wire_span message, int number) {
    tdm_wire_field field;
    size_t count = 0;
    while (tdm__wire_next(in, &message, &field)) count += field.number == number;
    return count;
}

/* ---- numbers ---- */

/* A repeated integer: one, or many in a counted field. */
static bool add_dim(tdm_wire_in *in, const tdm_wire_field *field, tdm_onnx_tensor *out) {
    tdm_wire_span span = field->span;
    uint64_t dim = field->value;
    const bool packed = field->how == TDM_WIRE_COUNTED;
    if (!packed && !tdm__wire_is(in, field, TDM_WIRE_VARINT)) return false;
    for (bool more = packed ? span.at < span.end : true; more; more = packed && span.at < span.end) {
        if (packed && !tdm__wire_varint(in, &span, &dim)) return false;
        if (out->ndim == TDM_ONNX_AXES || dim > (uint64_t)1 << 48)
            return tdm__wire_fail(in, field->begin, "numbers have too many dimensions, or too long ones");
        out->dim[out->ndim++] = (int64_t)dim;
    }
    return true;
}

typedef struct external {
    bool is;
    const char *name, *offset, *length;
} external;

static bool add_external(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message, external *out) {
    const char *key = "", *value = "";
    tdm_wire_field field;
    while (tdm__wire_next(in, &message, &field)) {
        if (field.number == PROPERTY_KEY && !tdm__onnx_text(file, in, &field, &key)) return false;
        if (field.number == PROPERTY_VALUE && !tdm__onnx_text(file, in, &field, &value)) return false;
    }
    if (strcmp(key, "location") == 0) out->name = value;
    if (strcmp(key, "offset") == 0) out->offset = value;
    if (strcmp(key, "length") == 0) out->length = value;
    return in->status == TDM_OK;
}

/* The numbers themselves, in one of the ways that a file may have them. */
static bool set_span(tdm_wire_in *in, const tdm_wire_field *field, tdm_onnx_tensor *out) {
    if (!tdm__wire_is(in, field, TDM_WIRE_COUNTED)) return false;
    if (field->span.end == field->span.at)
        return true; /* some writers leave an empty field beside the one that counts */
    if (out->span.end > out->span.at) return tdm__wire_fail(in, field->begin, "numbers are given twice");
    out->span = field->span;
    out->is_varints = field->number == NUMBERS_INT32S || field->number == NUMBERS_INT64S;
    return true;
}

static bool add_numbers_field(tdm_onnx_file *file, tdm_wire_in *in, const tdm_wire_field *field, tdm_onnx_tensor *out,
                              external *other) {
    switch (field->number) {
    case NUMBERS_DIM:
        return add_dim(in, field, out);
    case NUMBERS_TYPE:
        out->type = field->value < 1000 ? (int)field->value : 0;
        return tdm__wire_is(in, field, TDM_WIRE_VARINT);
    case NUMBERS_NAME:
        return tdm__onnx_text(file, in, field, &out->name);
    case NUMBERS_FLOATS:
    case NUMBERS_INT32S:
    case NUMBERS_INT64S:
    case NUMBERS_RAW:
    case NUMBERS_DOUBLES:
        return set_span(in, field, out);
    case NUMBERS_ELSEWHERE:
        return tdm__wire_is(in, field, TDM_WIRE_COUNTED) && add_external(file, in, field->span, other);
    case NUMBERS_PLACE:
        other->is = field->value == 1;
        return tdm__wire_is(in, field, TDM_WIRE_VARINT);
    default:
        return true;
    }
}

/* Are there as many bytes as the shape wants? Of varints each has one at least. */
static bool check_count(tdm_wire_in *in, uint64_t at, tdm_onnx_tensor *out) {
    const int each = tdm__onnx_bytes_of(out->type);
    const uint64_t bytes = out->span.end - out->span.at;
    int64_t count = 1;
    for (int i = 0; i < out->ndim; i++) {
        if (out->dim[i] != 0 && count > ((int64_t)1 << 48) / out->dim[i])
            return tdm__wire_fail(in, at, "numbers have a shape that no machine holds");
        count *= out->dim[i];
    }
    out->count = count;
    if (each == 0) return true; /* nobody can ask for them */
    if (out->is_varints ? bytes < (uint64_t)count : bytes != (uint64_t)count * (uint64_t)each)
        return tdm__wire_fail(in, at, "numbers are more or fewer than their shape says");
    return true;
}

bool tdm__onnx_read_tensor(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message, tdm_onnx_tensor *out) {
    const uint64_t at = message.at;
    external other = {.is = false};
    tdm_wire_field field;
    *out = (tdm_onnx_tensor){.name = "", .source = &file->source};
    while (tdm__wire_next(in, &message, &field))
        if (!add_numbers_field(file, in, &field, out, &other)) return false;
    if (in->status == TDM_OK && other.is)
        in->status = tdm__onnx_external(file, out, other.name, other.offset, other.length);
    return in->status == TDM_OK && check_count(in, at, out);
}

/* ---- attributes ---- */

/* The integers of a message, each a field, or many in a counted one. */
static bool read_ints(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message, tdm_onnx_attribute *out) {
    tdm_wire_span again = message;
    tdm_wire_field field;
    size_t room = 0;
    int64_t *items;
    while (tdm__wire_next(in, &message, &field))
        if (field.number == ATTRIBUTE_INTS)
            room += field.how == TDM_WIRE_COUNTED ? (size_t)(field.span.end - field.span.at) : 1;
    if (!tdm__onnx_count(file, in, again.at, room) || !take(file, in, &items, room, sizeof(*items))) return false;
    while (tdm__wire_next(in, &again, &field)) {
        if (field.number != ATTRIBUTE_INTS) continue;
        if (field.how != TDM_WIRE_COUNTED) items[out->count++] = (int64_t)field.value;
        while (field.how == TDM_WIRE_COUNTED && field.span.at < field.span.end) {
            uint64_t value;
            if (!tdm__wire_varint(in, &field.span, &value)) return false;
            items[out->count++] = (int64_t)value;
        }
    }
    out->ints = items;
    return in->status == TDM_OK;
}

/* Its texts; one that no layer reads is "", see read_attribute. */
static bool read_texts(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message, tdm_onnx_attribute *out) {
    const size_t room = count_fields(in, message, ATTRIBUTE_STRINGS);
    tdm_wire_field field;
    if (!tdm__onnx_count(file, in, message.at, room) || !take(file, in, &out->texts, room, sizeof(*out->texts)))
        return false;
    while (tdm__wire_next(in, &message, &field)) {
        const char *text = "";
        if (field.number != ATTRIBUTE_STRINGS) continue;
        if (!tdm__wire_is(in, &field, TDM_WIRE_COUNTED)) return false;
        if (field.span.end - field.span.at <= TDM_ONNX_NAME && !tdm__onnx_text(file, in, &field, &text)) return false;
        out->texts[out->count++] = text;
    }
    return in->status == TDM_OK;
}

static float float_of(uint64_t bits) {
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof(value));
    return value;
}

enum { SEVERAL_TYPES = -1, OTHER_TYPE = TYPE_STRINGS + 1 };

/* The type that goes with a field of an attribute; 0: it is none with a value. */
static int type_of_field(int number) {
    static const int known[] = {[ATTRIBUTE_F] = TYPE_FLOAT,          [ATTRIBUTE_I] = TYPE_INT,
                                [ATTRIBUTE_S] = TYPE_STRING,         [ATTRIBUTE_T] = TYPE_TENSOR_OF,
                                [ATTRIBUTE_FLOATS] = TYPE_FLOATS,    [ATTRIBUTE_INTS] = TYPE_INTS,
                                [ATTRIBUTE_GRAPH] = OTHER_TYPE,      [ATTRIBUTE_STRINGS] = TYPE_STRINGS,
                                [ATTRIBUTE_TENSORS] = OTHER_TYPE,    [ATTRIBUTE_GRAPHS] = OTHER_TYPE,
                                [ATTRIBUTE_SPARSE] = OTHER_TYPE,     [ATTRIBUTE_SPARSES] = OTHER_TYPE,
                                [ATTRIBUTE_TYPE_PROTO] = OTHER_TYPE, [ATTRIBUTE_TYPE_PROTOS] = OTHER_TYPE};
    return number < (int)(sizeof(known) / sizeof(known[0])) ? known[number] : 0;
}

/* Old writers do not say the type: it is that of the only field. */
static bool set_type(tdm_wire_in *in, uint64_t at, uint64_t told, int seen, tdm_onnx_attribute *out) {
    const uint64_t type = told != 0 ? told : seen > 0 ? (uint64_t)seen : 0;
    if (in->status == TDM_OK && type == 0) return tdm__wire_fail(in, at, "an attribute has no type");
    if (in->status == TDM_OK && type <= TYPE_STRINGS && seen > 0 && type != (uint64_t)seen)
        return tdm__wire_fail(in, at, "an attribute has another value than its type says");
    out->type = type <= TYPE_STRINGS ? (int)type : 0;
    return in->status == TDM_OK;
}

static bool read_attribute(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message, tdm_onnx_attribute *out) {
    const tdm_wire_span whole = message;
    tdm_wire_field field;
    uint64_t told = 0;
    int seen = 0;
    *out = (tdm_onnx_attribute){.name = ""};
    while (tdm__wire_next(in, &message, &field)) {
        const int type = type_of_field(field.number);
        bool good = true;
        if (type != 0) seen = seen == 0 || seen == type ? type : SEVERAL_TYPES;
        if (field.number == ATTRIBUTE_NAME) good = tdm__onnx_text(file, in, &field, &out->name);
        if (field.number == ATTRIBUTE_TYPE) told = field.value;
        if (field.number == ATTRIBUTE_F) out->f = float_of(field.value);
        if (field.number == ATTRIBUTE_I) out->i = (int64_t)field.value;
        /* Texts that no layer reads may be of any length, and need not be UTF-8. */
        if (field.number == ATTRIBUTE_S && field.span.end - field.span.at <= TDM_ONNX_NAME)
            good = tdm__onnx_text(file, in, &field, &out->s);
        if (field.number == ATTRIBUTE_T) {
            good = out->t == NULL || tdm__wire_fail(in, field.span.at, "an attribute has two tensors");
            good = good && tdm__wire_is(in, &field, TDM_WIRE_COUNTED) && tdm__onnx_count(file, in, field.span.at, 1) &&
                   take(file, in, &out->t, 1, sizeof(*out->t)) && tdm__onnx_read_tensor(file, in, field.span, out->t);
        }
        if (!good) return false;
    }
    if (!set_type(in, whole.at, told, seen, out)) return false;
    if (out->type == TYPE_INTS) return read_ints(file, in, whole, out);
    return out->type != TYPE_STRINGS || read_texts(file, in, whole, out);
}

/* ---- nodes ---- */

static bool read_property(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message, const char **scope) {
    static const char wanted[] = "pkg.torch.onnx.name_scopes";
    const char *key = NULL;
    tdm_wire_field field, value = {.number = 0};
    while (tdm__wire_next(in, &message, &field)) {
        if (field.number == PROPERTY_VALUE) value = field;
        if (field.number != PROPERTY_KEY || field.how != TDM_WIRE_COUNTED) continue;
        if (field.span.end - field.span.at == sizeof(wanted) - 1 && !tdm__onnx_text(file, in, &field, &key))
            return false;
    }
    if (in->status != TDM_OK || key == NULL || strcmp(key, wanted) != 0) return in->status == TDM_OK;
    return value.span.end - value.span.at > TDM_ONNX_NAME || tdm__onnx_text(file, in, &value, scope);
}

typedef struct node_lists {
    const char **input, **output;
    tdm_onnx_attribute *attribute;
} node_lists;

/* Each op looks through all of them, so there are limits. */
static bool check_lists(tdm_wire_in *in, uint64_t at, size_t inputs, size_t outputs, size_t attributes) {
    const bool fits =
        inputs <= TDM_ONNX_NODE_INPUTS && outputs <= TDM_ONNX_NODE_OUTPUTS && attributes <= TDM_ONNX_NODE_ATTRIBUTES;
    if (in->status != TDM_OK || fits) return in->status == TDM_OK;
    in->status = tdm__fail(TDM_E_UNSUPPORTED, __FILE__, __LINE__, NULL,
                           "%s: at byte %llu a node has %zu inputs, %zu outputs and %zu attributes, and tandem reads "
                           "nodes of at most %d, %d and %d",
                           in->source->path, (unsigned long long)at, inputs, outputs, attributes, TDM_ONNX_NODE_INPUTS,
                           TDM_ONNX_NODE_OUTPUTS, TDM_ONNX_NODE_ATTRIBUTES);
    return false;
}

static bool take_lists(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message, node_lists *out) {
    const size_t inputs = count_fields(in, message, NODE_INPUT), outputs = count_fields(in, message, NODE_OUTPUT),
                 attributes = count_fields(in, message, NODE_ATTRIBUTE);
    return check_lists(in, message.at, inputs, outputs, attributes) &&
           tdm__onnx_count(file, in, message.at, inputs + outputs + attributes) &&
           take(file, in, &out->input, inputs, sizeof(*out->input)) &&
           take(file, in, &out->output, outputs, sizeof(*out->output)) &&
           take(file, in, &out->attribute, attributes, sizeof(*out->attribute));
}

static bool add_node_field(tdm_onnx_file *file, tdm_wire_in *in, const tdm_wire_field *field, const node_lists *lists,
                           const char **domain, tdm_onnx_file_node *out) {
    switch (field->number) {
    case NODE_INPUT:
        return tdm__onnx_text(file, in, field, &lists->input[out->base.input_count++]);
    case NODE_OUTPUT:
        return tdm__onnx_text(file, in, field, &lists->output[out->base.output_count++]);
    case NODE_NAME:
        return tdm__onnx_text(file, in, field, &out->base.name);
    case NODE_OP:
        return tdm__onnx_text(file, in, field, &out->base.op);
    case NODE_DOMAIN:
        return tdm__onnx_text(file, in, field, domain);
    case NODE_ATTRIBUTE:
        return tdm__wire_is(in, field, TDM_WIRE_COUNTED) &&
               read_attribute(file, in, field->span, &lists->attribute[out->attribute_count++]);
    case NODE_PROPERTY:
        return tdm__wire_is(in, field, TDM_WIRE_COUNTED) && read_property(file, in, field->span, &out->scope);
    default:
        return true;
    }
}

bool tdm__onnx_read_node(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message, tdm_onnx_file_node *out) {
    node_lists lists;
    const char *domain = "";
    tdm_wire_field field;
    *out = (tdm_onnx_file_node){.base = {.op = "", .name = "", .domain = ""}};
    if (!take_lists(file, in, message, &lists)) return false;
    while (tdm__wire_next(in, &message, &field))
        if (!add_node_field(file, in, &field, &lists, &domain, out)) return false;
    out->base.input = lists.input;
    out->base.output = lists.output;
    out->attribute = lists.attribute;
    out->base.domain = strcmp(domain, "ai.onnx") == 0 ? "" : domain;
    return in->status == TDM_OK;
}

/* ---- inputs and outputs ---- */

static bool read_dim(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message, tdm_onnx_port *out) {
    tdm_wire_field field;
    if (out->ndim == TDM_ONNX_AXES) return tdm__wire_fail(in, message.at, "a value has too many dimensions");
    while (tdm__wire_next(in, &message, &field)) {
        if (field.number == DIM_VALUE) out->dim[out->ndim] = (int64_t)field.value;
        if (field.number == DIM_NAME && !tdm__onnx_text(file, in, &field, &out->dim_name[out->ndim])) return false;
    }
    out->ndim++;
    return in->status == TDM_OK;
}

/* The only field of this number in a message; false if it has none, or not as a message. */
static bool inner(tdm_wire_in *in, tdm_wire_span message, int number, tdm_wire_span *out) {
    tdm_wire_field field;
    bool found = false;
    while (tdm__wire_next(in, &message, &field)) {
        if (field.number != number || field.how != TDM_WIRE_COUNTED) continue;
        *out = field.span;
        found = true;
    }
    return found && in->status == TDM_OK;
}

bool tdm__onnx_read_port(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message, tdm_onnx_port *out) {
    tdm_wire_span type, tensor, shape, rest = message;
    tdm_wire_field field;
    *out = (tdm_onnx_port){.name = ""};
    while (tdm__wire_next(in, &rest, &field))
        if (field.number == VALUE_NAME && !tdm__onnx_text(file, in, &field, &out->name)) return false;
    if (!inner(in, message, VALUE_TYPE, &type) || !inner(in, type, TYPE_TENSOR, &tensor)) return in->status == TDM_OK;
    if (!inner(in, tensor, TENSOR_SHAPE, &shape)) return in->status == TDM_OK;
    while (tdm__wire_next(in, &shape, &field))
        if (field.number == SHAPE_DIM &&
            (!tdm__wire_is(in, &field, TDM_WIRE_COUNTED) || !read_dim(file, in, field.span, out)))
            return false;
    return in->status == TDM_OK;
}
