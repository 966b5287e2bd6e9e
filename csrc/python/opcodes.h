/* SPDX-License-Identifier: Apache-2.0 */
/* The opcodes of pickle protocol 5 that plain values need, as pickletools names them. */
#ifndef TFWIRE_OPCODES_H
#define TFWIRE_OPCODES_H

enum tfwi_opcode {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_NONE = 'N',
    OP_APPEND = 'a',
    OP_APPENDS = 'e',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_SETITEM = 's',
    OP_SETITEMS = 'u',
    OP_TUPLE = 't',
    OP_EMPTY_TUPLE = ')',
    OP_EMPTY_LIST = ']',
    OP_EMPTY_DICT = '}',
    OP_REDUCE = 'R',
    OP_BINBYTES = 'B',
    OP_SHORT_BINBYTES = 'C',
    OP_BINFLOAT = 'G',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_BINUNICODE = 'X',
    OP_PROTO = 0x80,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_BINUNICODE8 = 0x8d,
    OP_BINBYTES8 = 0x8e,
    OP_STACK_GLOBAL = 0x93,
    OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95,
    OP_BYTEARRAY8 = 0x96,
    OP_NEXT_BUFFER = 0x97
};

#endif /* TFWIRE_OPCODES_H */
