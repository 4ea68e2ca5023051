package asm

import (
	"encoding/hex"
	"testing"
)

// encodings are instructions and their bytes as llvm-mc of LLVM 14.0.6 writes them.
var encodings = []struct {
	text, bytes string
	write       func(e *Encoder)
}{
	{"ld1 {v2.4s, v3.4s}, [x17], #32", "22aadf4c", func(e *Encoder) { e.LoadVectors(2, 2, 17) }},
	{"st1 {v4.4s, v5.4s, v6.4s, v7.4s}, [x4], #64", "84289f4c", func(e *Encoder) { e.StoreVectors(4, 4, 4) }},
	{"ld1r {v2.4s}, [x9], x14", "22c9ce4d", func(e *Encoder) { e.Splat(2, 9, 14) }},
	{"ld1r {v2.2d}, [x9], x14", "22cdce4d", func(e *Encoder) { e.Long = true; e.Splat(2, 9, 14) }},
	{"fmla v29.4s, v3.4s, v1.4s", "7dcc214e", func(e *Encoder) { e.Three(e.Lanes(FusedAdd), 29, 3, 1) }},
	{"fmla v29.2d, v3.2d, v1.2d", "7dcc614e", func(e *Encoder) { e.Long = true; e.Three(e.Lanes(FusedAdd), 29, 3, 1) }},
	{"fadd v29.2d, v29.2d, v1.2d", "bdd7614e", func(e *Encoder) { e.Long = true; e.Three(e.Lanes(AddFloat), 29, 29, 1) }},
	{"eor v7.16b, v7.16b, v7.16b", "e71c276e", func(e *Encoder) { e.Three(BitsXor, 7, 7, 7) }},
	{"ldr h2, [x2]", "4200407d", func(e *Encoder) { e.Two(LoadHalf, 2, 2) }},
	{"fcvt s2, h2", "4240e21e", func(e *Encoder) { e.Two(HalfToSingle, 2, 2) }},
	{"dup v2.4s, v2.s[0]", "4204044e", func(e *Encoder) { e.Two(SplatFirst, 2, 2) }},
	{"ushr v17.16b, v16.16b, #4", "11060c6f", func(e *Encoder) { e.Two(UpperNibbles, 17, 16) }},
	{"sub v16.16b, v16.16b, v4.16b", "1086246e", func(e *Encoder) { e.Three(SubtractBytes, 16, 16, 4) }},
	{"sshll v18.8h, v16.8b, #0", "12a6080f", func(e *Encoder) { e.Two(WidenBytes, 18, 16) }},
	{"sshll2 v21.4s, v18.8h, #0", "55a6104f", func(e *Encoder) { e.Two(WidenHalves|UpperHalf, 21, 18) }},
	{"smull v18.8h, v16.8b, v4.8b", "12c2240e", func(e *Encoder) { e.Three(MultiplyBytes, 18, 16, 4) }},
	{"smlal2 v18.8h, v16.16b, v4.16b", "1282244e", func(e *Encoder) { e.Three(FusedBytes|UpperHalf, 18, 16, 4) }},
	{"saddlp v20.4s, v18.8h", "542a604e", func(e *Encoder) { e.Two(WidenPairs, 20, 18) }},
	{"sadalp v20.4s, v19.8h", "746a604e", func(e *Encoder) { e.Two(FusedPairs, 20, 19) }},
	{"faddp v0.4s, v0.4s, v0.4s", "00d4206e", func(e *Encoder) { e.Three(AddPairFloats, 0, 0, 0) }},
	{"dup v5.4s, v6.s[2]", "c504144e", func(e *Encoder) { e.Two(SplatFirst|2<<19, 5, 6) }},
	{"ldr h2, [x2, #2]", "4204407d", func(e *Encoder) { e.Two(LoadHalf|1<<10, 2, 2) }},
	{"ldr x5, [x0, #40]", "051440f9", func(e *Encoder) { e.Load(5, 0, 40) }},
	{"str x17, [x16]", "110200f9", func(e *Encoder) { e.Store(17, 16, 0) }},
	{"mov x17, x15", "f1030faa", func(e *Encoder) { e.Move(17, 15) }},
	{"add x3, x2, x14", "43000e8b", func(e *Encoder) { e.Add(3, 2, 14) }},
	{"add x2, x2, #2", "42080091", func(e *Encoder) { e.AddConst(2, 2, 2) }},
	{"subs x1, x1, #1", "210400f1", func(e *Encoder) { e.SubConst(1, 1, 1) }},
	{"umaxp v3.4s, v4.4s, v5.4s", "83a4a56e", func(e *Encoder) { e.Three(MaxPairs, 3, 4, 5) }},
	{"fmov x16, d3", "7000669e", func(e *Encoder) { e.Two(MoveOut, 16, 3) }},
	{"lsl x14, x14, #3", "cef17dd3", func(e *Encoder) { e.ShiftLeft(14, 3) }},
}

func TestEncodings(t *testing.T) {
	for _, x := range encodings {
		var e Encoder
		x.write(&e)
		if got := hex.EncodeToString(e.text); got != x.bytes {
			t.Errorf("%s is %s, not %s", x.text, got, x.bytes)
		}
	}
}
