package loop

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// exprs checks expressions that must have type t, Invalid meaning any, and
// reports whether all threads of a workgroup have the same values for them.
func (c *checker) exprs(t dtype.DType, what string, list ...scalar.Expr) (same bool, err error) {
	same = true
	for _, e := range list {
		if e == nil {
			return false, c.fail("%s is missing", what)
		}
		if t != dtype.Invalid && e.Type != t {
			return false, c.fail("%s is %s, not %s", what, e.Type, t)
		}
		scalar.Walk(e, func(n scalar.Expr) {
			if err != nil {
				return
			}
			var nodeSame bool
			nodeSame, err = c.node(n)
			same = same && nodeSame
		})
		if err != nil {
			return false, err
		}
	}
	return same, nil
}

// node checks one node of an expression. same is false if its value differs
// between threads even where those of its operands do not.
func (c *checker) node(n scalar.Expr) (same bool, err error) {
	switch n.Op {
	case scalar.OpArg:
		return false, c.fail("operand %%%d has no meaning in a kernel", n.Ref)
	case scalar.OpVar:
		return c.variable(n)
	case scalar.OpLoad:
		a, err := c.access(n.Ref, 1, loads, n.Args[0])
		if err == nil && a.DType != n.Type {
			err = c.fail("%s from array %s of %s", n.Type, a.Name, a.DType)
		}
		return a.isConstant(), err
	case scalar.OpCheck:
		return true, c.status()
	}
	return true, nil
}

// variable checks a use of a variable.
func (c *checker) variable(n scalar.Expr) (same bool, err error) {
	if kind, i := BuiltinOf(n.Name); kind != NoBuiltin {
		return c.builtin(n, kind, i)
	}
	l, ok := c.scope[n.Name]
	switch {
	case !ok:
		return false, c.fail("%s is not defined here", n.Name)
	case l.fragment:
		return false, c.fail("%s is a fragment", n.Name)
	case l.typ != n.Type:
		return false, c.fail("%s is %s here and %s where it is defined", n.Name, n.Type, l.typ)
	}
	return !c.varying[l.binding], nil
}

// builtin checks a use of a built-in variable.
func (c *checker) builtin(n scalar.Expr, kind Builtin, i int) (same bool, err error) {
	lo, hi, want := int64(0), int64(0), dtype.I32
	switch kind {
	case BuiltinLocalID:
		if hi = int64(c.k.Workgroup[i]) - 1; i == 0 && c.threads < c.k.Threads() {
			lo, hi = int64(c.first), int64(c.first+c.threads)-1
		}
	case BuiltinLocalIndex:
		lo, hi = int64(c.first), int64(c.first+c.threads)-1
	case BuiltinGroupID:
		hi, same = int64(c.k.Groups[i])-1, true
	case BuiltinLane:
		hi = int64(c.k.Subgroup[1]) - 1
	case BuiltinSubgroupIndex:
		if hi = int64(c.k.Subgroups()) - 1; hi < 0 {
			return false, c.fail("the kernel states no one subgroup size")
		}
	case BuiltinCounter:
		same = true
		if i >= c.k.Counters {
			return false, c.fail("%s is beyond the %d counters", n.Name, c.k.Counters)
		}
	case BuiltinScalar:
		same = true
		if i >= len(c.k.Scalars) || c.k.Scalars[i] == dtype.Invalid {
			return false, c.fail("%s is not declared", n.Name)
		}
		want = c.k.Scalars[i]
	}
	switch {
	case n.Type != want:
		return false, c.fail("%s is %s, not %s", n.Name, want, n.Type)
	case kind == BuiltinLane && c.k.Subgroup == [2]int{}:
		return false, c.fail("the kernel states no subgroup sizes")
	case n.Lo <= n.Hi && (n.Lo > lo || n.Hi < hi):
		return false, c.fail("%s is from %d to %d, not %d to %d", n.Name, lo, hi, n.Lo, n.Hi)
	}
	return same, nil
}

// statusWords is the length of the array that [scalar.Check] reports to.
const statusWords = 4

// status checks that the last storage array can take status codes.
func (c *checker) status() error {
	i := c.k.StatusArray()
	if i < 0 {
		return c.fail("a checked index, but the last storage array is not %d atomic u32 for the status", statusWords)
	}
	return nil
}

// StatusArray returns the place of the last storage array if it can be the
// status words that [scalar.Check] reports to, else -1.
func (k *Kernel) StatusArray() int {
	for i := len(k.Arrays) - 1; i >= 0; i-- {
		a := k.Arrays[i]
		if a.Space != Storage {
			continue
		}
		if a.Access == Atomic && a.DType == dtype.U32 && a.Len == statusWords {
			return i
		}
		break
	}
	return -1
}
