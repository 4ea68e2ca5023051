package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// attendMmaTile is how attention by multiply-adds is cut: a workgroup has the rows of
// so many warp groups, goes through blocks of so many columns, and has room in shared
// memory for stages of them. A multiprocessor holds so many such workgroups: while one
// takes exponentials, others multiply.
type attendMmaTile struct{ groups, columns, stages, resident int }

// attendMmaLongest bounds the length of queries, keys and values: sums of longer ones
// leave too few registers. Blocks of longer ones of f32 leave too little shared memory.
func attendMmaLongest(d ir.DType) int {
	if d == ir.F32 {
		return 64
	}
	return 128
}

// attendMmaTiles are the tiles by what is computed, for lengths up to 64 and up to 128
// of 16 bits: the fastest of some ten each on an H200, for 8×16 causal heads of 2048 in
// bf16.
var attendMmaTiles = [...][2]attendMmaTile{
	attendForward: {{1, 64, 3, 4}, {1, 64, 3, 2}},
	attendQueries: {{1, 64, 4, 2}, {2, 64, 3, 1}},
	attendKeys:    {{1, 64, 4, 2}, {2, 64, 3, 1}},
}

// attendMmaTilesF32 are those of f32, as TF32, for lengths up to 64: the fastest of six
// to nine each, there.
var attendMmaTilesF32 = [...]attendMmaTile{
	attendForward: {1, 64, 3, 2},
	attendQueries: {2, 64, 3, 1},
	attendKeys:    {2, 32, 4, 1},
}

// attendMmaSmall is the tile for devices whose shared memory does not hold the others.
var attendMmaSmall = attendMmaTile{1, 32, 3, 1}

// pickAttendMma returns the tile of a kernel on a device with so much shared memory.
var pickAttendMma = func(kind attendKind, d ir.DType, s ir.Attend, bytes int) attendMmaTile {
	t := attendMmaTilesF32[kind]
	if d != ir.F32 {
		t = attendMmaTiles[kind][ceilDiv(max(s.Depth, s.Width), 64)-1]
	}
	if t.sharedBytes(kind, d, s) > bytes {
		return attendMmaSmall
	}
	return t
}

// mmaTile is the tile of a kernel of attention by multiply-adds.
func (n *attention) mmaTile(kind attendKind) attendMmaTile {
	return pickAttendMma(kind, n.operandType(), n.Attend, n.caps.MmaBytes)
}

// sharedBytes bounds the workgroup memory of a kernel: the operands of the rows, and in
// each stage those of the columns with their turned copies and what belongs to queries.
func (t attendMmaTile) sharedBytes(kind attendKind, d ir.DType, s ir.Attend) int {
	row := loop.RowElements(d)
	depth, width := ceilDiv(s.Depth, row)*row, ceilDiv(s.Width, row)*row
	rows, columns := depth, depth+width
	if kind != attendForward {
		rows = depth + width
	}
	if d == ir.F32 { // blocks are whole rows of a turned copy
		columns += map[attendKind]int{attendQueries: s.Depth, attendKeys: s.Depth + s.Width}[kind]
	}
	bytes := d.Size() * (t.rows()*rows + t.stages*t.columns*columns)
	if kind == attendKeys {
		bytes += 8 * t.stages * t.columns
	}
	return bytes
}

func (t attendMmaTile) threads() int { return t.groups * loop.WarpGroup }
func (t attendMmaTile) rows() int    { return t.groups * loop.AtomRows }

// ahead is how many blocks are on their way: one stage is read, and of another it is
// not known whether all threads are through with it.
func (t attendMmaTile) ahead() int { return t.stages - 2 }

// attendsByMma reports whether the target has multiply-adds for attention.
func attendsByMma(s ir.Attend, d ir.DType, caps loop.Caps) bool {
	k := loop.Atom{Operand: d}.K()
	has := caps.Mma && (d == ir.F16 || d == ir.BF16 || d == ir.F32 && caps.TF32)
	if !has || max(s.Depth, s.Width) > attendMmaLongest(d) || s.Depth%k != 0 || s.Width%k != 0 {
		return false
	}
	for _, kind := range attendKinds(s) {
		if t := pickAttendMma(kind, d, s, caps.MmaBytes); t.sharedBytes(kind, d, s) > caps.MmaBytes {
			return false
		}
	}
	return true
}

// attendKinds are the kernels of an attention that multiply.
func attendKinds(s ir.Attend) []attendKind {
	if s.Backward {
		return []attendKind{attendQueries, attendKeys}
	}
	return []attendKind{attendForward}
}
