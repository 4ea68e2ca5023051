package loop

import (
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Builtin is a kind of predefined variable.
type Builtin uint8

// The kinds of built-in variables, by the functions that return them.
const (
	NoBuiltin Builtin = iota
	BuiltinLocalID
	BuiltinLocalIndex
	BuiltinGroupID
	BuiltinLane
	BuiltinSubgroupIndex
	BuiltinScalar
	BuiltinCounter
)

// builtinNames holds the reserved names; some are prefixes of an axis or a number.
var builtinNames = [...]string{
	BuiltinLocalID:       "local_",
	BuiltinLocalIndex:    "local_index",
	BuiltinGroupID:       "group_",
	BuiltinLane:          "lane",
	BuiltinSubgroupIndex: "subgroup_index",
	BuiltinScalar:        "scalar",
	BuiltinCounter:       "counter",
}

const axisNames = "xyz"

// builtinInitials are the first letters of the names, for a quick rejection.
const builtinInitials = "lgsc"

// LocalID returns the thread's index in its workgroup along axis 0, 1 or 2, an I32. size is
// the kernel's Workgroup[axis]; if it is 1 the result is the constant 0.
func LocalID(axis, size int) scalar.Expr { return place(BuiltinLocalID, axisNames[axis:axis+1], size) }

// LocalIndex returns the thread's linear index in its workgroup, an I32: x varies fastest,
// then y, then z. threads is the number of threads in a workgroup.
func LocalIndex(threads int) scalar.Expr { return place(BuiltinLocalIndex, "", threads) }

// GroupID returns the workgroup's index in the grid along axis 0, 1 or 2, an I32. count is
// the kernel's Groups[axis]; if it is 1 the result is the constant 0.
func GroupID(axis, count int) scalar.Expr {
	return place(BuiltinGroupID, axisNames[axis:axis+1], count)
}

// GlobalID returns GroupID·size + LocalID: the thread's index in the whole grid along axis 0,
// 1 or 2.
func GlobalID(axis, size, count int) scalar.Expr {
	base := scalar.Mul(GroupID(axis, count), scalar.ConstI(dtype.I32, int64(size)))
	return scalar.Add(base, LocalID(axis, size))
}

// Lane returns the thread's lane in its subgroup, an I32. The kernel must have a Subgroup
// range [lo, hi]. Which threads of a workgroup share a subgroup is unspecified.
func Lane(subgroup [2]int) scalar.Expr { return place(BuiltinLane, "", subgroup[1]) }

// SubgroupIndex returns the index of the thread's subgroup in its workgroup, an I32. count is
// [Kernel.Subgroups]; if it is 1 the result is the constant 0.
func SubgroupIndex(count int) scalar.Expr { return place(BuiltinSubgroupIndex, "", count) }

// RunScalar returns member i of the entry's uniform block, whose type is the kernel's
// Scalars[i].
func RunScalar(i int, t dtype.DType) scalar.Expr {
	return scalar.FreeVar(builtinNames[BuiltinScalar]+strconv.Itoa(i), t)
}

// Counter returns the iteration of the enclosing repeat of depth d, an I32 from 0. The
// outermost repeat has depth 0.
func Counter(d int) scalar.Expr {
	name := builtinNames[BuiltinCounter] + strconv.Itoa(d)
	return scalar.NewVar(name, dtype.I32, 0, 1<<31-1)
}

func place(b Builtin, suffix string, n int) scalar.Expr {
	if n == 1 {
		return scalar.ConstI(dtype.I32, 0)
	}
	return scalar.NewVar(builtinNames[b]+suffix, dtype.I32, 0, int64(n)-1)
}

// BuiltinOf returns the kind of the built-in variable called name, with its axis or its
// number, or NoBuiltin.
func BuiltinOf(name string) (kind Builtin, index int) {
	if name == "" || strings.IndexByte(builtinInitials, name[0]) < 0 {
		return NoBuiltin, 0
	}
	for b := BuiltinLocalID; b <= BuiltinCounter; b++ {
		rest, ok := strings.CutPrefix(name, builtinNames[b])
		if !ok {
			continue
		}
		switch b {
		case BuiltinLocalID, BuiltinGroupID:
			if axis := strings.Index(axisNames, rest); axis >= 0 && len(rest) == 1 {
				return b, axis
			}
		case BuiltinScalar, BuiltinCounter:
			if n, err := strconv.Atoi(rest); err == nil && strconv.Itoa(n) == rest && n >= 0 {
				return b, n
			}
		default:
			if rest == "" {
				return b, 0
			}
		}
	}
	return NoBuiltin, 0
}

// Int returns an index literal: I32, or I64 if n needs it.
func Int(n int) scalar.Expr {
	t := dtype.I32
	if int64(n) != int64(int32(n)) {
		t = dtype.I64
	}
	return scalar.ConstI(t, int64(n))
}

// Long converts a position to I64.
func Long(at scalar.Expr) scalar.Expr { return scalar.Convert(at, dtype.I64) }
