package loop

import (
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/format"
	"github.com/rlx-go/rlx/ir/scalar"
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
//     types of what they are stored in; indices, loop variables and bounds are
//     I32, conditions Bool.
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
//  8. The operands of a [CopyAsync], an [Mma] and the statements of fragments are as
//     these say.
//
// Whether an index is in bounds and whether threads race is for the simulator
// to find.
func Check(k *Kernel) error {
	c := checker{k: k, varying: map[binding]bool{}}
	if err := c.header(); err != nil {
		return err
	}
	// A variable varies between threads if any assignment to it does, also one
	// that comes after its use in a loop; so look until nothing new is found.
	for {
		known := len(c.varying)
		c.scope = map[string]local{}
		if err := c.block(k.Body, true); err != nil {
			return err
		}
		if len(c.varying) == known {
			break
		}
	}
	c.scope, c.barriers = map[string]local{}, true
	return c.block(k.Body, true)
}

// binding tells apart the variables of a kernel: the statement that defines one
// and, as a LoadVec defines several, its name.
type binding struct {
	stmt Stmt
	name string
}

// local is a variable that is visible at some point.
type local struct {
	binding
	typ     dtype.DType
	mutable bool
	// fragment is set for a name that expressions cannot have.
	fragment bool
}

type checker struct {
	k        *Kernel
	scope    map[string]local
	varying  map[binding]bool // differs between the threads of a workgroup
	barriers bool             // varying is complete, so rule 4 can be checked
	path     []Stmt           // that are being checked, from the outside in
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
	case a.Access == Atomic && (a.Space != Storage || a.Width != 1 || a.DType != dtype.I32 && a.DType != dtype.U32):
		return c.fail("array %s is atomic but not 32-bit integer storage of width 1", a.Name)
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
	case *CopyAsync:
		return nil, c.copyAsync(s)
	case *CopyWait:
		return nil, c.pending(s.Pending)
	case *CopyCommit, *ProxyFence:
		return nil, nil
	case *Mma:
		return nil, c.mma(s, uniform)
	case *Pack:
		return nil, c.pack(s)
	case *Shuffle:
		return c.shuffle(s, uniform)
	case *MmaWait:
		return nil, c.mmaWait(s, uniform)
	case *FragmentZero:
		return c.fragmentZero(s, uniform)
	case *FragmentLoad:
		return c.fragmentLoad(s, uniform)
	case *FragmentMulAdd:
		return nil, c.fragmentMulAdd(s, uniform)
	case *FragmentStore:
		return nil, c.fragmentStore(s, uniform)
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
	b := binding{s, name}
	c.scope[name] = local{binding: b, typ: t, mutable: mutable}
	if !uniform {
		c.varying[b] = true
	}
	return nil
}

func (c *checker) value(s Stmt, name string, e scalar.Expr, mutable bool) ([]string, error) {
	same, err := c.exprs(dtype.Invalid, "the value", e)
	if err != nil {
		return nil, err
	}
	return []string{name}, c.define(s, name, e.Type, same, mutable)
}

func (c *checker) assign(s *Assign, uniform bool) error {
	l, ok := c.scope[s.Name]
	if !ok || !l.mutable {
		return c.fail("%s is not defined by a Var", s.Name)
	}
	same, err := c.exprs(l.typ, "the value", s.Value)
	if err != nil {
		return err
	}
	if !same || !uniform {
		c.varying[l.binding] = true
	}
	return nil
}

// The ways to access an array.
const (
	loads  = false
	stores = true
)

// access checks that array i exists and is accessed as it allows.
func (c *checker) access(i, width int, write bool, at scalar.Expr) (Array, error) {
	if i < 0 || i >= len(c.k.Arrays) {
		return Array{}, c.fail("there is no array %d", i)
	}
	a := c.k.Arrays[i]
	switch {
	case write && a.Access == Atomic:
		return a, c.fail("array %s is atomic and changed by atomic operations alone", a.Name)
	case a.Width != width:
		return a, c.fail("array %s has width %d, the access %d", a.Name, a.Width, width)
	case write && a.Space == Storage && a.Access == Read:
		return a, c.fail("array %s is only read", a.Name)
	}
	if at.Type != dtype.I32 {
		return a, c.fail("the index of %s is %s, not i32", a.Name, at.Type)
	}
	return a, nil
}

func (c *checker) store(i int, at scalar.Expr, width int, values ...scalar.Expr) error {
	if _, err := c.exprs(dtype.I32, "the index", at); err != nil {
		return err
	}
	a, err := c.access(i, width, stores, at)
	if err != nil {
		return err
	}
	_, err = c.exprs(a.DType, "the value", values...)
	return err
}

func (c *checker) loadVec(s *LoadVec) ([]string, error) {
	same, err := c.exprs(dtype.I32, "the index", s.At)
	if err != nil {
		return nil, err
	}
	if len(s.Names) == 1 {
		return nil, c.fail("one name is no vector")
	}
	a, err := c.access(s.Array, len(s.Names), loads, s.At)
	if err != nil {
		return nil, err
	}
	for _, name := range s.Names {
		if err := c.define(s, name, a.DType, same && a.isConstant(), false); err != nil {
			return nil, err
		}
	}
	return s.Names, nil
}

func (c *checker) loop(s *For, uniform bool) error {
	same, err := c.exprs(dtype.I32, "a bound", s.Start, s.End, s.Step)
	if err != nil {
		return err
	}
	if step, ok := s.Step.IntConst(); !ok || step < 1 {
		return c.fail("the step is no positive constant")
	}
	if s.Unroll {
		_, start := s.Start.IntConst()
		if _, end := s.End.IntConst(); !start || !end {
			return c.fail("the bounds of an unrolled loop are not constant")
		}
	}
	if err := c.define(s, s.Var, dtype.I32, same, false); err != nil {
		return err
	}
	err = c.block(s.Body, uniform && same)
	delete(c.scope, s.Var)
	return err
}

func (c *checker) together(uniform bool) error {
	if c.barriers && !uniform {
		return c.fail("not all threads of a workgroup come here together")
	}
	return nil
}

func (c *checker) atomic(s *AtomicOp) ([]string, error) {
	if s.Array < 0 || s.Array >= len(c.k.Arrays) || c.k.Arrays[s.Array].Access != Atomic {
		return nil, c.fail("%s is not atomic", c.k.ArrayName(s.Array))
	}
	switch s.Op {
	case scalar.OpAdd, scalar.OpMax, scalar.OpMin, scalar.OpOr:
	default:
		return nil, c.fail("%s is no atomic operation", s.Op)
	}
	t := c.k.Arrays[s.Array].DType
	if _, err := c.exprs(dtype.I32, "the index", s.At); err != nil {
		return nil, err
	}
	if _, err := c.exprs(t, "the value", s.Value); err != nil || s.Old == "" {
		return nil, err
	}
	return []string{s.Old}, c.define(s, s.Old, t, false, false)
}

func (c *checker) subgroup(s *Subgroup, uniform bool) ([]string, error) {
	if c.k.Subgroup == [2]int{} {
		return nil, c.fail("the kernel states no subgroup sizes")
	}
	switch s.Op {
	case scalar.OpAdd, scalar.OpMax, scalar.OpMin:
	default:
		return nil, c.fail("%s is no subgroup operation", s.Op)
	}
	if err := c.together(uniform); err != nil {
		return nil, err
	}
	if _, err := c.exprs(dtype.Invalid, "the value", s.Value); err != nil {
		return nil, err
	}
	if !s.Value.Type.IsFloat() && !s.Value.Type.IsInteger() {
		return nil, c.fail("a value of type %s cannot be combined", s.Value.Type)
	}
	return []string{s.Name}, c.define(s, s.Name, s.Value.Type, false, false)
}

// Subgroups returns the number of subgroups in a workgroup, 0 where the kernel does not
// have one size of them.
func (k *Kernel) Subgroups() int {
	if k.Subgroup[0] == 0 || k.Subgroup[0] != k.Subgroup[1] {
		return 0
	}
	return k.Threads() / k.Subgroup[0]
}

// Threads returns the number of threads in a workgroup.
func (k *Kernel) Threads() int { return k.Workgroup[0] * k.Workgroup[1] * k.Workgroup[2] }

// isConstant reports whether nobody writes the array while the kernel runs.
func (a Array) isConstant() bool { return a.Space == Storage && a.Access == Read }

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
