package loop

import (
	"strings"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
)

// CheckError says what is wrong with a kernel and where: At is the path of
// statements from the outside in, "" for the kernel as a whole.
type CheckError struct {
	Kernel string
	At     string
	Reason string
}

// Error returns "kernel scale: for k > store y: the index is f32, not i32".
func (e *CheckError) Error() string {
	at := e.At
	if at != "" {
		at += ": "
	}
	return format.Sprintf("kernel %s: %s%s", e.Kernel, at, e.Reason)
}

// Check returns the first rule of the loop IR that k breaks, as a *CheckError:
//
//  1. Names are identifiers (a letter, then letters, digits and underscores, no
//     underscore last), defined before their use, and neither those of built-in
//     variables nor of anything visible where they are defined.
//
//  2. A variable has one type where it is defined and used; values have the
//     types of what they are stored in; indices of storage and bounds are I32 or
//     I64, of arrays that are longer than 2³¹ I64 alone, other indices I32, and
//     conditions Bool.
//
//  3. Arrays have a positive length, a width of 1, 2 or 4, and are accessed as
//     their width, space and access allow.
//
//  4. All threads of a workgroup come to each [Barrier], [Subgroup], [Shuffle], [Mma]
//     and [MmaWait], and to statements of fragments: what decides about it depends only on constants, group ids, run scalars,
//     counters, and what was loaded with such an index from an array that the
//     kernel only reads.
//
//  5. Steps are positive constants; all bounds of an unrolled loop are
//     constants.
//
//  6. The claimed ranges of built-in variables hold; scalars and counters are
//     declared.
//
//  7. A kernel with [scalar.Check] has the status words as its last storage
//     array.
//
//  8. The operands of a [CopyAsync], a [CopyBox], an [Mma] and the statements of
//     fragments, and what [Roles] says, are as these say. A role is a workgroup of its
//     own for rule 4.
//
// Whether an index is in bounds and whether threads race is for the simulator
// to find.
func Check(k *Kernel) error {
	c := checker{k: k, scope: map[string]local{}, threads: k.Threads()}
	if err := c.header(); err != nil {
		return err
	}
	// A variable varies between threads if any assignment to it does, also one
	// that comes after its use in a loop; so look again while such are found.
	for again := true; again; again = c.late {
		c.bindings, c.late = 0, false // no name is left in scope
		if err := c.block(k.Body, true); err != nil {
			return err
		}
	}
	return nil
}

// binding tells apart the variables of a kernel, by the order in which they are defined.
type binding int

// local is a variable that is visible at some point.
type local struct {
	binding binding
	stmt    Stmt // that defines it
	typ     dtype.DType
	mutable bool
	// fragment is set for a name that expressions cannot have.
	fragment bool
}

type checker struct {
	k        *Kernel
	scope    map[string]local
	bindings binding // that there are so far
	varying  []bool  // by binding: differs between the threads of a workgroup
	late     bool    // an assignment has made a variable varying, which may have been used before
	path     []Stmt  // that are being checked, from the outside in
	// first and threads are the threads that come to a statement: those of a role or of
	// the workgroup.
	first, threads int
}

func (c *checker) fail(text string, args ...any) error {
	labels := make([]string, len(c.path))
	for i, s := range c.path {
		labels[i] = c.k.Label(s)
	}
	return &CheckError{c.k.Name, strings.Join(labels, " > "), format.Sprintf(text, args...)}
}

func (c *checker) header() error {
	k := c.k
	if !isKernelName(k.Name) {
		return c.fail("the name is not made of lower-case letters, digits and underscores")
	}
	for axis, n := range k.Workgroup {
		if n < 1 || k.Groups[axis] < 1 {
			return c.fail("the sizes %d of a workgroup and %d of the grid are not positive", k.Workgroup, k.Groups)
		}
	}
	if s := k.Subgroup; s != [2]int{} {
		if s[0] < 1 || s[1] < s[0] || s[0]&(s[0]-1) != 0 || s[1]&(s[1]-1) != 0 {
			return c.fail("subgroup sizes %d to %d are no range of powers of two", s[0], s[1])
		}
		if k.Threads()%s[1] != 0 {
			return c.fail("%d threads are no multiple of the subgroup size %d", k.Threads(), s[1])
		}
	}
	seen := map[string]bool{}
	if withAsync {
		if err := c.objects(seen); err != nil {
			return err
		}
	}
	for _, a := range k.Arrays {
		if err := c.array(a); err != nil {
			return err
		}
		if seen[a.Name] {
			return c.fail("two arrays are called %s", a.Name)
		}
		seen[a.Name] = true
	}
	return nil
}

func (c *checker) array(a Array) error {
	switch {
	case !isName(a.Name):
		return c.fail("%q cannot be the name of an array", a.Name)
	case !a.DType.Valid() || a.DType.IsPacked():
		return c.fail("array %s has elements of type %s", a.Name, a.DType)
	case a.Width != 1 && a.Width != 2 && a.Width != 4:
		return c.fail("array %s has width %d", a.Name, a.Width)
	case a.Len < 0, a.Len == 0 && a.Space != Storage:
		return c.fail("array %s has length %d", a.Name, a.Len)
	case a.Space > Private || a.Access > Atomic:
		return c.fail("array %s has no known space or access", a.Name)
	case a.Access == Atomic && (a.Space != Storage || a.Width != 1 || a.DType != dtype.I32 && a.DType != dtype.U32 && a.DType != dtype.F32):
		return c.fail("array %s is atomic but not storage of i32, u32 or f32 of width 1", a.Name)
	}
	return nil
}

// block checks statements; uniform says that all threads of a workgroup run
// them together.
func (c *checker) block(body []Stmt, uniform bool) error {
	depth := len(c.path)
	var defined []string
	for _, s := range body {
		c.path = append(c.path[:depth], s)
		names, err := c.stmt(s, uniform)
		if err != nil {
			return err
		}
		defined = append(defined, names...)
	}
	c.path = c.path[:depth]
	for _, name := range defined {
		delete(c.scope, name)
	}
	return nil
}

// stmt checks one statement and returns the names that it defines for those
// after it.
func (c *checker) stmt(s Stmt, uniform bool) ([]string, error) {
	switch s := s.(type) {
	case *Let:
		return c.value(s, s.Name, s.Value, false)
	case *Var:
		return c.value(s, s.Name, s.Init, true)
	case *Assign:
		return nil, c.assign(s, uniform)
	case *Store:
		return nil, c.store(s.Array, s.At, 1, s.Value)
	case *LoadVec:
		return c.loadVec(s)
	case *StoreVec:
		return nil, c.store(s.Array, s.At, len(s.Values), s.Values...)
	case *For:
		return nil, c.loop(s, uniform)
	case *If:
		same, err := c.exprs(dtype.Bool, "the condition", s.Cond)
		if err != nil {
			return nil, err
		}
		if err := c.block(s.Then, uniform && same); err != nil {
			return nil, err
		}
		return nil, c.block(s.Else, uniform && same)
	case *Barrier:
		return nil, c.together(uniform)
	case *AtomicOp:
		return c.atomic(s)
	case *Subgroup:
		return c.subgroup(s, uniform)
	case *Shuffle:
		return c.shuffle(s, uniform)
	case *FragmentZero:
		return c.fragmentZero(s, uniform)
	case *FragmentLoad:
		return c.fragmentLoad(s, uniform)
	case *FragmentMulAdd:
		return nil, c.fragmentMulAdd(s, uniform)
	case *FragmentStore:
		return nil, c.fragmentStore(s, uniform)
	}
	if withAsync {
		return nil, c.async(s, uniform)
	}
	return nil, c.fail("no statement of the loop IR")
}

// define makes a name visible.
func (c *checker) define(s Stmt, name string, t dtype.DType, uniform, mutable bool) error {
	if !isName(name) {
		return c.fail("%q cannot be the name of a variable", name)
	}
	if _, ok := c.scope[name]; ok {
		return c.fail("the name %s is taken by a variable", name)
	}
	for _, a := range c.k.Arrays {
		if a.Name == name {
			return c.fail("the name %s is taken by an array", name)
		}
	}
	for _, m := range c.k.Mbarriers {
		if m.Name == name {
			return c.fail("the name %s is taken by an mbarrier", name)
		}
	}
	b := c.bindings
	c.bindings++
	if int(b) == len(c.varying) {
		c.varying = append(c.varying, false)
	}
	c.scope[name] = local{binding: b, stmt: s, typ: t, mutable: mutable}
	c.varying[b] = c.varying[b] || !uniform
	return nil
}

func isKernelName(s string) bool {
	for _, c := range []byte(s) {
		if c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// isName reports whether s can be the name of a variable or array.
func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	kind, _ := BuiltinOf(s)
	return s != "" && s[len(s)-1] != '_' && kind == NoBuiltin
}
