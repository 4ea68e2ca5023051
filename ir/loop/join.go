package loop

import (
	"slices"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// JoinGrids returns the horizontal fusion of two independent kernels that pass [Check]: its grid is the grid of a followed by that of b. same
// has the number of a's array that is bound to the same memory, or -1, for each storage array of b. ok is false where the
// workgroups differ, a grid is not along axis 0, or a kernel has what one of several workgroups cannot: atomic arrays and
// what only Hopper has.
func JoinGrids(a, b *Kernel, same []int) (k *Kernel, ok bool) {
	if a.Workgroup != b.Workgroup || !a.joins() || !b.joins() || a.Subgroup != b.Subgroup && a.Subgroup != [2]int{} && b.Subgroup != [2]int{} {
		return nil, false
	}
	out := *a
	out.Name, out.Groups[0] = a.Name+"_"+b.Name, a.Groups[0]+b.Groups[0]
	out.Counters, out.Resident = max(a.Counters, b.Counters), max(a.Resident, b.Resident)
	out.Uncontracted = a.Uncontracted || b.Uncontracted
	out.Subgroup = [2]int{max(a.Subgroup[0], b.Subgroup[0]), max(a.Subgroup[1], b.Subgroup[1])}
	out.Scalars = slices.Clone(a.Scalars)
	for i, t := range b.Scalars {
		if i == len(out.Scalars) {
			out.Scalars = append(out.Scalars, t)
		} else if t != dtype.Invalid {
			out.Scalars[i] = t
		}
	}
	names := unroller{taken: map[string]bool{}}
	for _, x := range a.Arrays {
		names.taken[x.Name] = true
	}
	walkNames(a.Body, func(name string) { names.taken[name] = true })
	numbers := out.arraysOf(a, b, same, &names)
	group, first, other := GroupID(0, out.Groups[0]), names.fresh("first", 0), names.fresh("other", 0)
	renamed := binds{group.Name: {name: other}}
	walkNames(b.Body, func(name string) { renamed[name] = bind{name: names.fresh(name, 1)} })
	out.Body = []Stmt{&If{
		Cond: scalar.Lt(group, scalar.ConstI(dtype.I32, int64(a.Groups[0]))),
		Then: append([]Stmt{&Let{Name: first, Value: group}}, binds{group.Name: {name: first}}.block(a.Body, numbers[0])...),
		Else: append([]Stmt{&Let{Name: other, Value: scalar.Sub(group, scalar.ConstI(dtype.I32, int64(a.Groups[0])))}}, renamed.block(b.Body, numbers[1])...),
	}}
	return &out, true
}

// arraysOf sets the arrays of a kernel of two, those in storage first, and returns the new numbers of the arrays of both.
func (k *Kernel) arraysOf(a, b *Kernel, same []int, names *unroller) (numbers [2][]int) {
	k.Arrays = nil
	numbers = [2][]int{make([]int, len(a.Arrays)), make([]int, len(b.Arrays))}
	for _, storage := range []bool{true, false} {
		for i, x := range a.Arrays {
			if (x.Space == Storage) == storage {
				numbers[0][i] = len(k.Arrays)
				k.Arrays = append(k.Arrays, x)
			}
		}
		for i, x := range b.Arrays {
			switch {
			case (x.Space == Storage) != storage:
			case storage && same[i] >= 0:
				numbers[1][i] = numbers[0][same[i]]
			default:
				numbers[1][i] = len(k.Arrays)
				x.Name = names.fresh(x.Name, 1)
				k.Arrays = append(k.Arrays, x)
			}
		}
	}
	return numbers
}

// joins reports whether a kernel can be a part of another.
func (k *Kernel) joins() bool {
	atomic := func(a Array) bool { return a.Access == Atomic }
	return k.Groups[1] == 1 && k.Groups[2] == 1 && len(k.TensorMaps) == 0 && len(k.Mbarriers) == 0 && !slices.ContainsFunc(k.Arrays, atomic)
}

// block returns a copy of statements with the names of b replaced, and the numbers of arrays by those in number.
func (b binds) block(body []Stmt, number []int) []Stmt {
	var expr func(e scalar.Expr) scalar.Expr
	expr = func(e scalar.Expr) scalar.Expr {
		return scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) {
			switch to, known := b[n.Name]; {
			case n.Op == scalar.OpVar && known:
				return scalar.NewVar(to.name, n.Type, n.Lo, n.Hi), true
			case n.Op == scalar.OpLoad:
				return scalar.LoadAt(number[n.Ref], n.Type, expr(n.Args[0])), true
			}
			return nil, false
		})
	}
	var block func(body []Stmt) []Stmt
	block = func(body []Stmt) []Stmt {
		out := make([]Stmt, len(body))
		for i, s := range body {
			out[i] = mapStmt(s, expr, block)
			names(out[i], func(name *string, _ naming) { *name = b.name(*name) })
			Arrays(out[i], func(array *int) { *array = number[*array] })
		}
		return out
	}
	return block(body)
}
