/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing specifications with the contents that _parsing/spec_cache.py knows them by: tuples of a
 * type and what tells a value from others of its type. */
#include "python/objects.h"

#ifdef TFW_PYTHON

#include "base/memory.h"

static const char contents_name[] = "tfw_contents";

typedef enum comparison {
    BY_MAKING, /* the content of the value, which is compared with this one */
    BY_IDENTITY,
    BY_EQUALITY,
    BY_ITEMS
} comparison;

/* A content, and those in it. */
typedef struct content {
    PyObject *tuple; /* borrowed, as what follows */
    PyTypeObject *type;
    PyObject *part; /* the first after the type */
    comparison by;
    bool is_list;
    bool has_list; /* that somebody may change: it is one, or has one in it */
    size_t count;
    struct content *items;
} content;

typedef struct feature_content {
    PyObject *key;
    PyObject *held; /* a feature of this content: only lists in it may be others. None: it may be
                       another one by itself */
    content of_key;
    content of_feature;
} feature_content;

typedef struct contents {
    PyObject *kept;       /* what the others borrow */
    PyObject *content_of; /* makes a content; where it fails, nothing is the same */
    size_t count;
    feature_content of[];
} contents;

/* ---- Made ----------------------------------------------------------------------------------- */

static void free_content(content *c) {
    for (size_t i = 0; c->items != NULL && i < c->count; i++) {
        free_content(&c->items[i]);
    }
    tfw_free(c->items);
}

static comparison comparison_by(const content *c, bool is_sequence, PyObject *many) {
    if (is_sequence) {
        return c->part == many ? BY_MAKING : BY_ITEMS;
    }
    if (c->type == &PyLong_Type || c->type == &PyUnicode_Type || c->type == &PyBytes_Type) {
        return BY_EQUALITY;
    }
    return c->type == &PyBool_Type || c->part == Py_None ? BY_IDENTITY : BY_MAKING;
}

/* False, with an exception. */
static bool read_content(content *c, PyObject *tuple, PyObject *many) {
    const Py_ssize_t size = PyTuple_Size(tuple);
    if (size < 1) {
        return PyErr_Occurred() == NULL && PyErr_BadArgument();
    }
    c->tuple = tuple;
    c->type = (PyTypeObject *)PyTuple_GetItem(tuple, 0);
    c->count = (size_t)size - 1;
    c->part = c->count != 0 ? PyTuple_GetItem(tuple, 1) : NULL;
    c->is_list = c->has_list = PyType_IsSubtype(c->type, &PyList_Type) != 0;
    const bool is_sequence = c->is_list || PyType_IsSubtype(c->type, &PyTuple_Type);
    c->by = comparison_by(c, is_sequence, many);
    if (c->by != BY_ITEMS || c->count == 0) {
        return true;
    }
    c->items = tfwi_calloc(c->count, sizeof *c->items);
    if (c->items == NULL) {
        return PyErr_NoMemory() != NULL;
    }
    for (size_t i = 0; i < c->count; i++) {
        if (!read_content(&c->items[i], PyTuple_GetItem(tuple, (Py_ssize_t)i + 1), many)) {
            return false;
        }
        c->has_list |= c->items[i].has_list;
    }
    return true;
}

static void free_contents(PyObject *capsule) {
    contents *c = PyCapsule_GetPointer(capsule, contents_name);
    for (size_t i = 0; i < c->count; i++) {
        free_content(&c->of[i].of_key);
        free_content(&c->of[i].of_feature);
    }
    Py_XDECREF(c->kept);
    tfw_free(c);
}

/* content_of, its mark of many items, features: what tfw_has_content compares with. Features are
 * tuples: a key, its content, a feature or None, and its content. */
PyObject *tfwi_new_contents(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    const Py_ssize_t count = PyTuple_Size(args[2]);
    (void)module, (void)arg_count;
    contents *c = count >= 0 ? tfwi_calloc(1, sizeof *c + (size_t)count * sizeof c->of[0]) : NULL;
    PyObject *capsule = c != NULL ? PyCapsule_New(c, contents_name, free_contents) : NULL;
    if (capsule == NULL) {
        tfw_free(c);
        return PyErr_Occurred() == NULL ? PyErr_NoMemory() : NULL;
    }
    c->kept = PyTuple_Pack(2, args[0], args[2]);
    c->content_of = args[0];
    c->count = (size_t)count;
    bool done = c->kept != NULL;
    for (size_t i = 0; done && i < c->count; i++) {
        PyObject *given = PyTuple_GetItem(args[2], (Py_ssize_t)i);
        c->of[i].key = PyTuple_GetItem(given, 0);
        c->of[i].held = PyTuple_GetItem(given, 2);
        done = PyErr_Occurred() == NULL &&
               read_content(&c->of[i].of_key, PyTuple_GetItem(given, 1), args[1]) &&
               read_content(&c->of[i].of_feature, PyTuple_GetItem(given, 3), args[1]);
    }
    if (!done) {
        Py_CLEAR(capsule);
    }
    return capsule;
}

/* ---- Compared ------------------------------------------------------------------------------- */

static int is_same(const contents *all, PyObject *value, const content *c, bool is_held);

/* The items of a list or tuple; Python may run meanwhile. */
static int has_same_items(const contents *all, PyObject *items, const content *c, bool is_held) {
    const Py_ssize_t size = c->is_list ? PyList_Size(items) : PyTuple_Size(items);
    int same = size == (Py_ssize_t)c->count;
    for (size_t i = 0; same == 1 && i < c->count; i++) {
        if (is_held && !c->items[i].has_list) {
            continue;
        }
        PyObject *item = c->is_list ? PyList_GetItem(items, (Py_ssize_t)i)
                                    : PyTuple_GetItem(items, (Py_ssize_t)i);
        if (item == NULL) {
            return -1;
        }
        Py_INCREF(item);
        same = is_same(all, item, &c->items[i], is_held);
        Py_DECREF(item);
    }
    return same;
}

/* Whether a value has this content: 1, 0, or -1 with an exception. is_held: it is the one that had
 * it; what a list holds may be another one. */
static int is_same(const contents *all, PyObject *value, const content *c, bool is_held) {
    if (Py_TYPE(value) != c->type) {
        return 0;
    }
    if (is_held && !c->has_list) {
        return 1;
    }
    if (c->by == BY_ITEMS) {
        return has_same_items(all, value, c, is_held && !c->is_list);
    }
    if (value == c->part || c->by == BY_IDENTITY) {
        return value == c->part;
    }
    if (c->by == BY_EQUALITY) {
        return PyObject_RichCompareBool(value, c->part, Py_EQ);
    }
    PyObject *made = PyObject_CallFunctionObjArgs(all->content_of, value, NULL);
    const int equal = made != NULL ? PyObject_RichCompareBool(made, c->tuple, Py_EQ) : -1;
    Py_XDECREF(made);
    return equal;
}

static int has_same_features(const contents *all, PyObject *features) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    size_t i = 0;
    int same = PyDict_Size(features) == (Py_ssize_t)all->count;
    while (same == 1 && PyDict_Next(features, &at, &key, &value)) {
        if (i == all->count) {
            return 0; /* the dict has grown meanwhile */
        }
        const feature_content *f = &all->of[i++];
        Py_INCREF(key);
        Py_INCREF(value);
        same = key == f->key ? 1 : is_same(all, key, &f->of_key, false);
        same = same != 1 ? same : is_same(all, value, &f->of_feature, value == f->held);
        Py_DECREF(key);
        Py_DECREF(value);
    }
    return same;
}

/* contents, features: whether a specification is a dict of these features; or both are None. */
PyObject *tfwi_has_content(PyObject *module, tfwi_arguments args, Py_ssize_t arg_count) {
    (void)module, (void)arg_count;
    if (args[0] == Py_None || !PyDict_CheckExact(args[1])) {
        return PyBool_FromLong(args[0] == args[1]);
    }
    const contents *all = PyCapsule_GetPointer(args[0], contents_name);
    const int same = all != NULL ? has_same_features(all, args[1]) : -1;
    if (same < 0 && !PyErr_ExceptionMatches(PyExc_Exception)) {
        return NULL; /* an interrupt */
    }
    PyErr_Clear();
    return PyBool_FromLong(same == 1);
}

#endif /* TFW_PYTHON */
