/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of features, which rows that are written together must agree in.
 *
 * The first value of a key settles its kind. From then on the prefixes of the other kinds are not
 * ready: what writes a value need not compare anything, and stops at one that it cannot write. */
#include "python/rows.h"

#ifdef TFW_PYTHON

#include <math.h>

int32_t tfwi_kind_of(const tfwi_rows *r, const tfwi_pair *pair) {
    const tfwi_item *value = &pair->value;
    if (value->type != TFWI_ITEM_LIST) {
        return value->type == TFWI_ITEM_RAW ? value->kind : value->type;
    }
    uint8_t settled;
    switch (value->kinds) {
    case 0:
        settled = pair->key < r->prefixes.count ? r->prefixes.of[pair->key].kind : TFW_NONE;
        return settled != TFW_NONE && settled != TFWI_ANY_KIND ? settled : TFW_INT64;
    case TFWI_BIT(TFWI_ITEM_INT): return TFW_INT64;
    case TFWI_BIT(TFWI_ITEM_FLOAT):
    case TFWI_BIT(TFWI_ITEM_FLOAT) | TFWI_BIT(TFWI_ITEM_INT): return TFW_FLOAT;
    case TFWI_BIT(TFWI_ITEM_STRING): return TFW_BYTES;
    default: return TFW_NONE;
    }
}

/* ---- Settling ------------------------------------------------------------------------------- */

/* The kind that was declared for a key; TFW_NONE: none. */
static int declared_kind(const tfwi_rows *r, uint32_t key) {
    if (r->declared == NULL) {
        return TFW_NONE;
    }
    const tfwi_key *k = &r->keys.of[key];
    PyObject *name = PyBytes_FromStringAndSize((const char *)k->name, (Py_ssize_t)k->len);
    PyObject *kind = name != NULL ? PyDict_GetItemWithError(r->declared, name) : NULL;
    const long found = kind != NULL ? PyLong_AsLong(kind) : TFW_NONE;
    Py_XDECREF(name);
    return PyErr_Occurred() != NULL ? TFW_E_MEMORY : (int)found;
}

/* Makes the prefixes of all kinds but the settled one ready, or not. Few keys have any. */
static void allow_others(tfwi_key_prefixes *k, bool allowed) {
    for (int32_t kind = TFW_BYTES; k->kind != TFWI_ANY_KIND && kind <= TFW_INT64; kind++) {
        if (k->kind == kind || k->uses[kind - 1] <= TFWI_TEMPLATE_USES) {
            continue;
        }
        tfwi_scalar scalar;
        if (!allowed || !tfwi_scalar_init(&scalar, &k->of[kind - 1], kind, NULL)) {
            scalar = (tfwi_scalar){0};
        }
        k->ready[kind - 1] = allowed;
        k->scalars[kind - 1] = scalar;
    }
}

/* Settles the kind of a key, unless it is: as it was declared, or as that of a value. */
static int settle_key(tfwi_rows *r, uint32_t key, int32_t kind) {
    if ((key >= r->prefixes.count && tfwi_rows_make_places(r) != TFW_OK) ||
        !TFWI_RESERVE_MORE(r->settled, 1)) {
        return TFW_E_MEMORY;
    }
    tfwi_key_prefixes *k = &r->prefixes.of[key];
    if (k->kind != TFW_NONE) {
        return TFW_OK;
    }
    const int declared = declared_kind(r, key);
    if (declared < 0) {
        return declared;
    }
    k->kind = (uint8_t)(declared != TFW_NONE ? declared : kind);
    k->widens = declared == TFW_FLOAT;
    k->first = r->number;
    r->settled.of[r->settled.count++] = key;
    allow_others(k, false);
    return TFW_OK;
}

void tfwi_rows_unsettle(tfwi_rows *r, size_t count) {
    while (r->settled.count > count) {
        tfwi_key_prefixes *k = &r->prefixes.of[r->settled.of[--r->settled.count]];
        allow_others(k, true);
        k->kind = TFW_NONE;
        k->widens = false;
        r->is_settled = false;
    }
}

/* Settles the kind of a pair's key; of a value that has none, only sees whether it is settled. */
static int settle_pair(tfwi_rows *r, const tfwi_pair *pair) {
    const tfwi_item *value = &pair->value;
    const bool known =
        pair->key < r->prefixes.count && r->prefixes.of[pair->key].kind != TFW_NONE;
    if (known) {
        return TFW_OK;
    }
    if (value->type == TFWI_ITEM_MISSING ||
        (value->type == TFWI_ITEM_LIST && value->kinds == 0)) {
        r->is_settled = false;
        return TFW_OK;
    }
    const int32_t kind = tfwi_kind_of(r, pair);
    return kind == TFW_NONE || !r->may_settle ? TFWI_UNKNOWN : settle_key(r, pair->key, kind);
}

int tfwi_rows_settle(tfwi_rows *r) {
    int status = TFW_OK;
    r->is_settled = true;
    for (size_t i = 0; status == TFW_OK && i < r->pairs.count; i++) {
        status = settle_pair(r, &r->pairs.of[i]);
    }
    return status;
}

/* ---- Values of another kind ----------------------------------------------------------------- */

/* The numbers of an array as elements of a list. */
static int list_of_array(tfwi_rows *r, tfwi_item *value) {
    const uint8_t *numbers = (const uint8_t *)(uintptr_t)value->a;
    const size_t count = (size_t)(value->b / sizeof(int64_t));
    if (!TFWI_RESERVE_MORE(r->tape, count)) {
        return TFW_E_MEMORY;
    }
    *value = (tfwi_item){.type = TFWI_ITEM_LIST, .kinds = TFWI_BIT(TFWI_ITEM_INT),
                         .a = r->tape.count, .b = count};
    for (size_t i = 0; i < count; i++, numbers += sizeof(int64_t)) {
        r->tape.of[r->tape.count++] = (tfwi_element){tfwi_load64(numbers), TFWI_ITEM_INT};
    }
    return TFW_OK;
}

static int widen(tfwi_rows *r, tfwi_item *value) {
    if (value->type == TFWI_ITEM_INT) {
        const double number = (double)(int64_t)value->a;
        value->type = TFWI_ITEM_FLOAT;
        memcpy(&value->a, &number, sizeof number);
        return TFW_OK;
    }
    if (value->type == TFWI_ITEM_RAW && value->b == 0) { /* an array knows its kind, a list not */
        value->kind = TFW_FLOAT;
        return TFW_OK;
    }
    const int status = value->type == TFWI_ITEM_RAW ? list_of_array(r, value) : TFW_OK;
    value->kinds |= TFWI_BIT(TFWI_ITEM_FLOAT);
    return status;
}

int tfwi_rows_fit(tfwi_rows *r, tfwi_pair *pair) {
    const tfwi_key_prefixes *k = &r->prefixes.of[pair->key];
    tfwi_item *value = &pair->value;
    double number;
    memcpy(&number, &value->a, sizeof number);
    if (k->kind == TFW_BYTES && value->type == TFWI_ITEM_FLOAT && isnan(number)) {
        value->type = TFWI_ITEM_MISSING;
        return TFW_OK;
    }
    return k->widens && tfwi_kind_of(r, pair) == TFW_INT64 ? widen(r, value) : TFWI_UNKNOWN;
}

/* ---- Calls ---------------------------------------------------------------------------------- */

/* rows, a dict of kinds by the bytes of keys: from now on rows must agree in kinds, of which none
 * is settled but these; None: they may differ. */
PyObject *tfwi_set_kinds(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    tfwi_rows *r = tfwi_rows_take(args[0]);
    (void)module, (void)arg_count;
    if (r == NULL) {
        return NULL;
    }
    tfwi_rows_unsettle(r, 0);
    r->compares = args[1] != Py_None;
    Py_CLEAR(r->declared);
    if (r->compares && PyDict_Size(args[1]) != 0) {
        Py_INCREF(args[1]);
        r->declared = args[1];
    }
    Py_RETURN_NONE;
}

/* rows, bytes of a key, kind, number: settles the key's kind, unless it is. Returns it (0xff: any),
 * and the number of the row that settled it. */
PyObject *tfwi_settle_kind(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    tfwi_rows *r = tfwi_rows_take(args[0]);
    const int32_t kind = (int32_t)PyLong_AsLong(args[2]);
    const uint64_t number = PyLong_AsUnsignedLongLong(args[3]);
    const char *name = PyBytes_AsString(args[1]);
    uint32_t key;
    (void)module, (void)arg_count;
    if (r == NULL || PyErr_Occurred() != NULL) {
        return NULL;
    }
    r->number = number;
    int status = tfwi_keys_find(&r->keys, (const uint8_t *)name, (size_t)Py_SIZE(args[1]), &key);
    if (status == TFW_E_UNSUPPORTED) { /* keys that were made to collide are not remembered */
        return Py_BuildValue("iK", (int)kind, (unsigned long long)number);
    }
    status = status == TFW_OK ? settle_key(r, key, kind) : status;
    if (status != TFW_OK) {
        return PyErr_Occurred() == NULL ? PyErr_NoMemory() : NULL;
    }
    const tfwi_key_prefixes *k = &r->prefixes.of[key];
    return Py_BuildValue("iK", (int)k->kind, (unsigned long long)k->first);
}

/* rows, number: forgets the kinds that were settled by rows of this number or a higher one. */
PyObject *tfwi_unsettle_kinds(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    tfwi_rows *r = tfwi_rows_take(args[0]);
    const uint64_t number = PyLong_AsUnsignedLongLong(args[1]);
    (void)module, (void)arg_count;
    if (r == NULL || PyErr_Occurred() != NULL) {
        return NULL;
    }
    size_t count = r->settled.count;
    while (count != 0 && r->prefixes.of[r->settled.of[count - 1]].first >= number) {
        count--;
    }
    tfwi_rows_unsettle(r, count);
    Py_RETURN_NONE;
}

#endif /* TFW_PYTHON */
