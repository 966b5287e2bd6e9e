/* SPDX-License-Identifier: Apache-2.0 */
/* What messages hold, without a schema: features, their kinds, counts and ranges of values. */
#include "base/keys.h"
#include "base/utf8.h"
#include "parse/parse.h"
#include "parse/range.h"
#include "wire/floats.h"
#include "wire/message.h"

/* A feature, and where the current message has it. */
typedef struct feature {
    tfw_feature_survey found;
    uint32_t key;
    uint32_t place;   /* of its value in the last message that has it */
    uint64_t message; /* the number of that message, from 1 on */
} feature;

/* The value of a feature in the current message, which may still turn out to be malformed. */
typedef struct value {
    size_t feature;
    bool not_utf8;   /* a string is not; unless the feature is known for it */
    int32_t single;  /* the kind of its only value, of which number holds the bits or the length */
    unsigned kinds;  /* else: a bit for each */
    uint64_t number;
    uint64_t steps; /* 1, unless it is a list */
    uint64_t least_values;
    uint64_t most_values;
    tfw_kind_survey of[4]; /* by kind; those not in kinds hold anything */
} value;

/* The keys of features, or of feature lists. */
typedef struct names {
    tfwi_keys keys;
    TFWI_ARRAY(size_t) features; /* by key */
} names;

struct tfw_survey {
    names names[2]; /* of features, of feature lists */
    TFWI_ARRAY(feature) features;
    TFWI_ARRAY(value) values; /* of the message at hand */
    size_t before;            /* how many the previous message has: they are still there */
    uint64_t message;
    tfwi_range step; /* of the current Feature */
    bool not_utf8;   /* a string of it is not; false unless it is looked for */
    bool looks;      /* for such a string */
    tfwi_blocks blocks;
    tfwi_fault fault;
};

/* ---- Values --------------------------------------------------------------------------------- */

static void value_restart(void *self, int32_t kind) {
    tfw_survey *s = self;
    (void)kind;
    s->step = tfwi_empty_range;
    s->not_utf8 = false;
}

static bool value_bytes(void *self, const uint8_t *data, size_t len) {
    tfw_survey *s = self;
    const int64_t length = (int64_t)len;
    tfwi_range_add_ints(&s->step, &length, 1);
    s->not_utf8 |= s->looks && !s->not_utf8 && !tfwi_is_utf8(data, len);
    return true;
}

static bool value_floats(void *self, const uint8_t *block, size_t count) {
    tfw_survey *s = self;
    float values[TFWI_VARINTS_AT_ONCE];
    while (count != 0) {
        const size_t some = count < TFWI_VARINTS_AT_ONCE ? count : TFWI_VARINTS_AT_ONCE;
        tfwi_load_floats(values, block, some);
        tfwi_range_add_floats(&s->step, values, some);
        block += 4 * some;
        count -= some;
    }
    return true;
}

static bool value_int64(void *self, int64_t v) {
    tfw_survey *s = self;
    tfwi_range_add_ints(&s->step, &v, 1);
    return true;
}

static bool value_varints(void *self, const uint8_t *p, const uint8_t *end, tfwi_fault *fault) {
    tfw_survey *s = self;
    int64_t values[TFWI_VARINTS_AT_ONCE];
    while (p != end) {
        size_t count;
        p = tfwi_read_block(&s->blocks, p, end, values, TFWI_VARINTS_AT_ONCE, &count, fault);
        if (p == NULL) {
            return false;
        }
        tfwi_range_add_ints(&s->step, values, count);
    }
    return true;
}

static const tfwi_sink value_sink = {value_restart, value_bytes, value_floats, value_int64,
                                     value_varints};

static void add_values(tfw_kind_survey *to, const tfw_kind_survey *more) {
    to->values += more->values;
    to->least = more->least < to->least ? more->least : to->least;
    to->most = more->most > to->most ? more->most : to->most;
    to->least_float = more->least_float < to->least_float ? more->least_float : to->least_float;
    to->most_float = more->most_float > to->most_float ? more->most_float : to->most_float;
    to->sum += more->sum;
    to->nans += more->nans;
}

/* ---- Features ------------------------------------------------------------------------------- */

/* Adds the current Feature to a value. */
TFWI_INLINE void end_step(tfw_survey *s, value *v, int32_t kind) {
    const unsigned bit = 1u << kind;
    const uint64_t count = s->step.of.values;
    s->step.of.sum = tfwi_range_sum(&s->step, kind);
    if ((v->kinds & bit) == 0) {
        v->kinds |= bit;
        v->of[kind] = s->step.of;
    } else {
        add_values(&v->of[kind], &s->step.of);
    }
    v->not_utf8 |= s->not_utf8;
    v->steps++;
    v->least_values = count < v->least_values ? count : v->least_values;
    v->most_values = count > v->most_values ? count : v->most_values;
}

/* The value of a map entry: a Feature, which may be in pieces. */
static bool survey_feature(tfw_survey *s, tfwi_entry *entry, value *v) {
    int32_t kind = TFW_NONE;
    const uint8_t *p, *end;
    s->step = tfwi_empty_range;
    while (tfwi_next_piece(entry, &p, &end)) {
        if (!tfwi_walk_feature(&value_sink, s, p, end, &kind, &s->fault)) {
            return false;
        }
    }
    end_step(s, v, kind);
    return true;
}

/* The value of a map entry: a FeatureList; the steps of its pieces follow each other. */
static bool survey_list(tfw_survey *s, tfwi_entry *entry, value *v) {
    const uint8_t *p, *end;
    while (tfwi_next_piece(entry, &p, &end)) {
        tfwi_field field;
        while (tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, &s->fault)) {
            int32_t kind = TFW_NONE;
            s->step = tfwi_empty_range;
            s->not_utf8 = false;
            if (!tfwi_walk_feature(&value_sink, s, field.data, field.data + field.len, &kind,
                                   &s->fault)) {
                return false;
            }
            end_step(s, v, kind);
        }
        if (p != end) {
            return false;
        }
    }
    return true;
}

/* Adds the feature of a key. */
static bool add_feature(tfw_survey *s, bool is_list, uint32_t key) {
    names *n = &s->names[is_list];
    if (!TFWI_RESERVE_MORE(s->features, 1) || !TFWI_RESERVE_MORE(n->features, 1)) {
        return tfwi_out_of_memory(&s->fault);
    }
    feature *f = &s->features.of[s->features.count];
    *f = (feature){.key = key};
    f->found = (tfw_feature_survey){.least_values = UINT64_MAX, .least_steps = UINT64_MAX,
                                    .is_list = is_list};
    for (size_t i = 0; i < 4; i++) {
        f->found.kinds[i] = tfwi_empty_range.of;
    }
    n->features.of[n->features.count++] = s->features.count++;
    return true;
}

/* The feature of a key; NULL: a fault. */
static feature *find_feature(tfw_survey *s, bool is_list, const tfwi_entry *entry) {
    names *n = &s->names[is_list];
    uint32_t key;
    int status = tfwi_keys_find(&n->keys, entry->key, entry->key_len, &key);
    if (status != TFW_OK) {
        s->fault.status = status;
        s->fault.text = status == TFW_E_MEMORY ? "out of memory" : "keys that collide";
        return NULL;
    }
    /* Keys before it may have no feature: memory was short. */
    while (n->features.count <= key) {
        if (!add_feature(s, is_list, (uint32_t)n->features.count)) {
            return NULL;
        }
    }
    return &s->features.of[n->features.of[key]];
}

/* The feature that the previous message has at this place, if it has this key; else NULL. */
TFWI_INLINE feature *guess_feature(tfw_survey *s, bool is_list, const tfwi_entry *entry) {
    if (s->values.count >= s->before) {
        return NULL;
    }
    feature *f = &s->features.of[s->values.of[s->values.count].feature];
    if (f->found.is_list != is_list) {
        return NULL;
    }
    const tfwi_key *key = &s->names[is_list].keys.of[f->key];
    return tfwi_is_named(key, entry->key, entry->key_len) ? f : NULL;
}

/* The place for the value of a key in the current message; NULL: a fault. */
static value *find_value(tfw_survey *s, bool is_list, const tfwi_entry *entry) {
    feature *f = guess_feature(s, is_list, entry);
    if (f == NULL && (f = find_feature(s, is_list, entry)) == NULL) {
        return NULL;
    }
    if (f->message != s->message) {
        if (!TFWI_RESERVE_MORE(s->values, 1)) {
            tfwi_out_of_memory(&s->fault);
            return NULL;
        }
        f->message = s->message;
        f->place = (uint32_t)s->values.count++;
    }
    value *v = &s->values.of[f->place];
    v->feature = (size_t)(f - s->features.of);
    v->kinds = 0;
    v->not_utf8 = s->not_utf8 = false;
    v->single = TFW_NONE;
    s->looks = f->found.not_utf8 == 0;
    v->steps = v->most_values = 0;
    v->least_values = UINT64_MAX;
    return v;
}

/* ---- Single values -------------------------------------------------------------------------- */

/* Bytes of an entry around its key and its value, if each length takes one byte. */
enum { BEFORE_KEY = 4, AFTER_KEY = 6 };

/* Whether an entry with this key, whose lengths take one byte, is at p and may have a value. */
TFWI_INLINE bool is_short_entry(const uint8_t *p, const uint8_t *end, const tfwi_key *key) {
    const size_t left = (size_t)(end - p), least = BEFORE_KEY + key->len + AFTER_KEY;
    return left >= least && p[0] == TFWI_TAG(1, TFWI_WIRE_LEN) && p[1] < 0x80 &&
           p[1] + (size_t)2 >= least && p[1] + (size_t)2 <= left &&
           p[2] == TFWI_TAG(1, TFWI_WIRE_LEN) && tfwi_is_named(key, p + BEFORE_KEY, p[3]);
}

/* The kind of a Feature with a single value, if it fills such an entry, whose key has this length;
 * TFW_NONE: it does not, or is written in another way. *out_value: its bytes. */
TFWI_INLINE int32_t single_kind(const uint8_t *p, size_t key_len, const uint8_t **out_value,
                                size_t *out_len) {
    const uint8_t *q = p + BEFORE_KEY + key_len;
    const size_t rest = p[1] - (size_t)(BEFORE_KEY - 2) - key_len; /* from q on */
    const bool nested = q[0] == TFWI_TAG(2, TFWI_WIRE_LEN) && q[1] == rest - 2 &&
                        q[3] == rest - 4 && q[4] == TFWI_TAG(1, TFWI_WIRE_LEN) &&
                        q[5] == rest - AFTER_KEY;
    *out_value = q + AFTER_KEY;
    *out_len = q[5];
    if (!nested) {
        return TFW_NONE;
    }
    switch (q[2]) {
    case TFWI_TAG(TFW_BYTES, TFWI_WIRE_LEN): return TFW_BYTES;
    case TFWI_TAG(TFW_FLOAT, TFWI_WIRE_LEN): return *out_len == 4 ? TFW_FLOAT : TFW_NONE;
    case TFWI_TAG(TFW_INT64, TFWI_WIRE_LEN): return *out_len != 0 ? TFW_INT64 : TFW_NONE;
    default: return TFW_NONE;
    }
}

/* A single value's number; false: there are several. */
TFWI_INLINE bool read_single(tfw_survey *s, int32_t kind, const uint8_t *p, size_t len,
                             uint64_t *out) {
    if (kind == TFW_INT64) {
        tfwi_fault ignored; /* the complete walk finds it again */
        int64_t number = 0;
        size_t count = 0;
        const uint8_t *next = tfwi_read_block(&s->blocks, p, p + len, &number, 1, &count, &ignored);
        *out = (uint64_t)number;
        return next == p + len && count == 1;
    }
    *out = kind == TFW_FLOAT ? tfwi_load32(p) : len;
    return true;
}

/* Notes entries in the order of the previous message, as long as each has a single value and is
 * written in the usual way; returns where it stopped. The complete walk would find the same. */
static const uint8_t *survey_singles(tfw_survey *s, const uint8_t *p, const uint8_t *end) {
    while (s->values.count < s->before) {
        value *v = &s->values.of[s->values.count];
        feature *f = &s->features.of[v->feature];
        if (f->found.is_list || f->message == s->message) {
            break;
        }
        const tfwi_key *key = &s->names[0].keys.of[f->key];
        if (!is_short_entry(p, end, key)) {
            break;
        }
        const uint8_t *bytes;
        size_t len;
        v->single = single_kind(p, key->len, &bytes, &len);
        if (v->single == TFW_NONE || !read_single(s, v->single, bytes, len, &v->number)) {
            break;
        }
        v->not_utf8 = v->single == TFW_BYTES && f->found.not_utf8 == 0 &&
                      !tfwi_is_utf8(bytes, len);
        v->steps = v->least_values = v->most_values = 1;
        f->message = s->message;
        f->place = (uint32_t)s->values.count++;
        p += p[1] + 2;
    }
    return p;
}

/* Adds a single value to those of its kind. */
static void add_single(tfw_kind_survey *k, int32_t kind, uint64_t number) {
    k->values++;
    if (kind == TFW_FLOAT) {
        const uint32_t bits = (uint32_t)number;
        float x;
        memcpy(&x, &bits, sizeof x);
        k->nans += x != x;
        k->least_float = x < k->least_float ? x : k->least_float;
        k->most_float = x > k->most_float ? x : k->most_float;
        k->sum += x == x ? x : 0;
        return;
    }
    const int64_t x = (int64_t)number;
    k->least = x < k->least ? x : k->least;
    k->most = x > k->most ? x : k->most;
    k->sum += (double)x;
}

/* ---- Messages ------------------------------------------------------------------------------- */

static bool survey_entries(tfw_survey *s, const uint8_t *p, const uint8_t *end, bool is_list) {
    tfwi_field field;
    p = is_list ? p : survey_singles(s, p, end);
    while (tfwi_find_field(&p, end, TFWI_TAG(1, TFWI_WIRE_LEN), &field, &s->fault)) {
        tfwi_entry entry;
        if (!tfwi_read_entry(field.data, field.data + field.len, &entry, &s->fault)) {
            return false;
        }
        value *v = find_value(s, is_list, &entry);
        if (v == NULL || !(is_list ? survey_list : survey_feature)(s, &entry, v)) {
            return false;
        }
        p = is_list ? p : survey_singles(s, p, end);
    }
    return p == end;
}

/* The map that lies in the pieces of one field of the message. */
static bool survey_map(tfw_survey *s, const tfwi_message *m, bool is_list) {
    const uint8_t *p = m->begin, *end = m->begin + m->len;
    const uint32_t tag = is_list ? TFWI_TAG(2, TFWI_WIRE_LEN) : TFWI_TAG(1, TFWI_WIRE_LEN);
    tfwi_field field;
    while (tfwi_find_field(&p, end, tag, &field, &s->fault)) {
        if (!survey_entries(s, field.data, field.data + field.len, is_list)) {
            return false;
        }
    }
    return p == end;
}

/* Adds the current message to the totals. */
static void keep_message(tfw_survey *s) {
    for (size_t i = 0; i < s->values.count; i++) {
        const value *v = &s->values.of[i];
        tfw_feature_survey *f = &s->features.of[v->feature].found;
        f->messages++;
        f->not_utf8 |= v->not_utf8;
        f->least_values = v->least_values < f->least_values ? v->least_values : f->least_values;
        f->most_values = v->most_values > f->most_values ? v->most_values : f->most_values;
        f->least_steps = v->steps < f->least_steps ? v->steps : f->least_steps;
        f->most_steps = v->steps > f->most_steps ? v->steps : f->most_steps;
        if (v->single != TFW_NONE) {
            f->kinds[v->single].messages++;
            add_single(&f->kinds[v->single], v->single, v->number);
            continue;
        }
        for (int kind = 0; kind < 4; kind++) {
            if (v->kinds >> kind & 1) {
                f->kinds[kind].messages++;
                add_values(&f->kinds[kind], &v->of[kind]);
            }
        }
    }
}

static bool survey_message(tfw_survey *s, const tfwi_message *m, unsigned flags) {
    s->before = s->values.count;
    s->values.count = 0;
    s->message++;
    s->blocks.limit = m->limit;
    if (!survey_map(s, m, false) || ((flags & TFW_SEQUENCE) != 0 && !survey_map(s, m, true))) {
        return false;
    }
    const uint32_t maps = (flags & TFW_SEQUENCE) != 0 ? 2 : 1;
    if (s->values.count == 0 && !tfwi_is_empty(m->begin, m->len, maps, &s->fault)) {
        return false;
    }
    keep_message(s);
    return true;
}

/* ---- Surveys -------------------------------------------------------------------------------- */

int tfw_survey_create(uint64_t seed, tfw_survey **out_survey, tfw_error *error) {
    tfw_survey *s = *out_survey = tfwi_calloc(1, sizeof *s);
    if (s == NULL) {
        return tfwi_fail(error, TFW_E_MEMORY, "out of memory");
    }
    s->names[0].keys.seed = s->names[1].keys.seed = tfwi_seed_of(seed);
    s->blocks.varints = tfwi_matcher_best()->varints;
    return TFW_OK;
}

void tfw_survey_free(tfw_survey *s) {
    if (s == NULL) {
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        tfwi_keys_clear(&s->names[i].keys);
        tfw_free(s->names[i].features.of);
    }
    tfw_free(s->features.of);
    tfw_free(s->values.of);
    tfw_free(s);
}

int tfw_survey_add(tfw_survey *s, const uint8_t *data, size_t data_len, const tfw_span *spans,
                   size_t count, unsigned flags, size_t *out_done, tfw_error *error) {
    tfwi_messages messages;
    size_t done = 0;
    int status = tfwi_check_flags(flags, TFW_SEQUENCE | TFW_ADDRESSES, error);
    if (status == TFW_OK) {
        status = tfwi_messages_init(&messages, data, data_len, spans, count, flags, error);
    }
    for (; status == TFW_OK && done < count; done += status == TFW_OK) {
        const tfwi_message message = tfwi_message_at(&messages, done);
        if (!survey_message(s, &message, flags)) {
            status = tfwi_fail(error, s->fault.status, s->fault.text);
            TFWI_SET(error, record, (int64_t)done);
            if (status == TFW_E_WIRE) {
                TFWI_SET(error, offset, s->fault.at - message.begin);
            }
        }
    }
    if (out_done != NULL) {
        *out_done = done;
    }
    return status;
}

/* Features that only malformed messages have are left out. They lie between others: a survey of
 * them is empty. */
size_t tfw_survey_count(const tfw_survey *s) { return s->features.count; }

void tfw_survey_get(const tfw_survey *s, size_t i, tfw_feature_survey *out_feature) {
    const feature *f = &s->features.of[i];
    const tfwi_key *key = &s->names[f->found.is_list].keys.of[f->key];
    const size_t size = out_feature->size;
    tfw_feature_survey found = f->found;
    for (size_t kind = 0; kind < 4; kind++) { /* no -0: which zero was met first is chance */
        found.kinds[kind].least_float += 0.0;
        found.kinds[kind].most_float += 0.0;
    }
    found.size = size;
    found.name = key->name;
    found.name_len = key->len;
    memcpy(out_feature, &found, size < sizeof found ? size : sizeof found);
}
