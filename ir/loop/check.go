package loop

import (
	"strings"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// CheckError describes an invalid kernel. At is the path of statements from the outside in,
// "" for the kernel as a whole.
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
//     trailing underscore), defined before use, and distinct from built-in
//     variables and from all names in scope.
//
//  2. A variable is used with the type it is defined with. Stored values have the
//     element type of the array. Bounds and indices of storage are I32 or I64, I64
//     for arrays longer than 2³¹; other indices are I32; conditions are Bool.
//
//  3. Arrays have a positive length, a width of 1, 2 or 4, and are accessed as
//     their width, space and access mode allow.
//
//  4. [Barrier], [Subgroup], [Shuffle], [Mma], [MmaWait] and the fragment statements
//     are in uniform control flow: it depends only on constants, group ids, run
//     scalars, counters, and loads at such indices from read-only arrays.
//
//  5. Steps are positive constants; all bounds of an unrolled loop are
//     constants.
//
//  6. The ranges given for built-in variables are correct; scalars and counters
//     are declared.
//
//  7. A kernel with [scalar.Check] has the status words as its last storage array.
//
//  8. [CopyAsync], [CopyTMA], [Mma], [Roles] and the fragment statements follow their
//     documentation. For rule 4 a role is a workgroup of its own.
//
// It does not check bounds of indices or data races; the simulator does.
func Check(k *Kernel) error {
	c := checker{k: k, scope: map[string]local{}, threads: k.Threads()}
	if err := c.header(); err != nil {
		return err
	}
	// A variable is non-uniform if any assignment to it is, even a later one in a loop;
	// so repeat the analysis while new ones are found.
	for again := true; again; again = c.late {
		c.bindings, c.late = 0, false // no name is in scope
		if err := c.block(k.Body, true); err != nil {
			return err
		}
	}
	return nil
}

// binding identifies a variable of a kernel by the order of definition.
type binding int

// local is a variable in scope.
type local struct {
	binding binding
	stmt    Stmt // the definition
	typ     dtype.DType
	mutable bool
	// fragment marks a fragment, which expressions cannot use.
	fragment bool
}

type checker struct {
	k        *Kernel
	scope    map[string]local
	bindings binding // number of bindings so far
	varying  []bool  // by binding: not uniform in a workgroup
	late     bool    // a variable became varying, maybe after a use
	path     []Stmt  // the statements being checked, from the outside in
	// first and threads give the threads that execute a statement: those of a role or of
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
		return c.fail("the name must be lower-case letters, digits and underscores")
	}
	for axis, n := range k.Workgroup {
		if n < 1 || k.Groups[axis] < 1 {
			return c.fail("the workgroup is %d and the grid %d; sizes must be positive", k.Workgroup, k.Groups)
		}
	}
	if s := k.Subgroup; s != [2]int{} {
		if s[0] < 1 || s[1] < s[0] || s[0]&(s[0]-1) != 0 || s[1]&(s[1]-1) != 0 {
			return c.fail("subgroup sizes are %d to %d; they must be powers of two in order", s[0], s[1])
		}
		if k.Threads()%s[1] != 0 {
			return c.fail("%d threads; the subgroup size needs a multiple of %d", k.Threads(), s[1])
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
			return c.fail("array %s is declared twice", a.Name)
		}
		seen[a.Name] = true
	}
	return nil
}

func (c *checker) array(a Array) error {
	switch {
	case !isName(a.Name):
		return c.fail("invalid array name %q", a.Name)
	case !a.DType.Valid() || a.DType.IsPacked():
		return c.fail("array %s has the invalid type %s", a.Name, a.DType)
	case a.Width != 1 && a.Width != 2 && a.Width != 4:
		return c.fail("array %s has the invalid width %d", a.Name, a.Width)
	case a.Len < 0, a.Len == 0 && a.Space != Storage:
		return c.fail("array %s has the invalid length %d", a.Name, a.Len)
	case a.Space > Private || a.Access > Atomic:
		return c.fail("array %s has an unknown space or access", a.Name)
	case a.Access == Atomic && (a.Space != Storage || a.Width != 1 || a.DType != dtype.I32 && a.DType != dtype.U32 && a.DType != dtype.F32):
		return c.fail("array %s is atomic; it must be storage of i32, u32 or f32 of width 1", a.Name)
	}
	return nil
}

// block checks statements; uniform says that they are in uniform control flow.
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

// stmt checks a statement and returns the names that it brings into scope.
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
		return nil, c.requireUniform(uniform)
	case *AtomicOp:
		return c.atomic(s)
	case *Subgroup:
		return c.subgroup(s, uniform)
	case *Shuffle:
		return c.shuffle(s, uniform)
	}
	if withAsync {
		return c.matrixStmt(s, uniform)
	}
	return nil, c.fail("unknown statement")
}

// define brings a name into scope.
func (c *checker) define(s Stmt, name string, t dtype.DType, uniform, mutable bool) error {
	if !isName(name) {
		return c.fail("invalid variable name %q", name)
	}
	if _, ok := c.scope[name]; ok {
		return c.fail("%s is already a variable", name)
	}
	for _, a := range c.k.Arrays {
		if a.Name == name {
			return c.fail("%s is already an array", name)
		}
	}
	for _, m := range c.k.Mbarriers {
		if m.Name == name {
			return c.fail("%s is already an mbarrier", name)
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
		return c.fail("%s is not a Var", s.Name)
	}
	same, err := c.exprs(l.typ, "the value", s.Value)
	if err != nil {
		return err
	}
	if !same || !uniform {
		c.vary(l.binding)
	}
	return nil
}

// vary records that a variable is not uniform.
func (c *checker) vary(b binding) {
	if !c.varying[b] {
		c.varying[b], c.late = true, true
	}
}

// The kinds of access to an array.
const (
	loads  = false
	stores = true
)

// positions is exprs for expressions of type I32 or I64.
func (c *checker) positions(what string, list ...scalar.Expr) (same bool, err error) {
	if same, err = c.exprs(dtype.Invalid, what, list...); err != nil {
		return false, err
	}
	for _, e := range list {
		if e.Type != dtype.I32 && e.Type != dtype.I64 {
			return false, c.fail("%s is %s; it must be i32", what, e.Type)
		}
	}
	return same, nil
}

// access checks that array i exists and allows the access.
func (c *checker) access(i, width int, write bool, at scalar.Expr) (Array, error) {
	if i < 0 || i >= len(c.k.Arrays) {
		return Array{}, c.fail("unknown array %d", i)
	}
	a := c.k.Arrays[i]
	switch {
	case write && a.Access == Atomic:
		return a, c.fail("array %s is atomic; it needs atomic operations", a.Name)
	case a.Width != width:
		return a, c.fail("array %s has width %d; the access has %d", a.Name, a.Width, width)
	case write && a.Space == Storage && a.Access == Read:
		return a, c.fail("array %s is read only", a.Name)
	}
	switch {
	case at.Type == dtype.I64 && a.Space == Storage:
	case at.Type != dtype.I32:
		return a, c.fail("the index of %s is %s; it must be i32", a.Name, at.Type)
	case a.Len > MaxIndex:
		return a, c.fail("the index of %s is i32; its %d elements need i64", a.Name, a.Len)
	}
	return a, nil
}

func (c *checker) store(i int, at scalar.Expr, width int, values ...scalar.Expr) error {
	if _, err := c.positions("the index", at); err != nil {
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
	same, err := c.positions("the index", s.At)
	if err != nil {
		return nil, err
	}
	if len(s.Names) == 1 {
		return nil, c.fail("a vector load needs several names")
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
	same, err := c.positions("a bound", s.Start, s.End, s.Step)
	if err != nil {
		return err
	}
	if step, ok := s.Step.IntConst(); !ok || step < 1 {
		return c.fail("the step of the loop must be a positive constant")
	}
	if s.Unroll {
		_, start := s.Start.IntConst()
		if _, end := s.End.IntConst(); !start || !end {
			return c.fail("the bounds of an unrolled loop must be constant")
		}
	}
	if err := c.define(s, s.Var, s.Type(), same, false); err != nil {
		return err
	}
	err = c.block(s.Body, uniform && same)
	delete(c.scope, s.Var)
	return err
}

func (c *checker) requireUniform(uniform bool) error {
	if !uniform {
		return c.fail("divergent control flow; it must be uniform")
	}
	return nil
}

func (c *checker) atomic(s *AtomicOp) ([]string, error) {
	if s.Array < 0 || s.Array >= len(c.k.Arrays) || c.k.Arrays[s.Array].Access != Atomic {
		return nil, c.fail("array %s is not atomic", c.k.ArrayName(s.Array))
	}
	switch s.Op {
	case scalar.OpAdd, scalar.OpMax, scalar.OpMin, scalar.OpOr:
	default:
		return nil, c.fail("unknown atomic operation %s", s.Op)
	}
	t := c.k.Arrays[s.Array].DType
	if t.IsFloat() && s.Op != scalar.OpAdd {
		return nil, c.fail("unknown atomic operation %s on %s", s.Op, t)
	}
	if _, err := c.positions("the index", s.At); err != nil {
		return nil, err
	}
	if _, err := c.exprs(t, "the value", s.Value); err != nil || s.Old == "" {
		return nil, err
	}
	return []string{s.Old}, c.define(s, s.Old, t, false, false)
}

func (c *checker) subgroup(s *Subgroup, uniform bool) ([]string, error) {
	if c.k.Subgroup == [2]int{} {
		return nil, c.fail("the kernel has no subgroup sizes")
	}
	switch s.Op {
	case scalar.OpAdd, scalar.OpMax, scalar.OpMin:
	default:
		return nil, c.fail("unknown subgroup operation %s", s.Op)
	}
	if err := c.requireUniform(uniform); err != nil {
		return nil, err
	}
	if _, err := c.exprs(dtype.Invalid, "the value", s.Value); err != nil {
		return nil, err
	}
	if !s.Value.Type.IsFloat() && !s.Value.Type.IsInteger() {
		return nil, c.fail("a subgroup operation cannot combine %s", s.Value.Type)
	}
	return []string{s.Name}, c.define(s, s.Name, s.Value.Type, false, false)
}

// exprs checks expressions of type t, or of any type if t is Invalid, and reports whether
// their values are uniform in a workgroup.
func (c *checker) exprs(t dtype.DType, what string, list ...scalar.Expr) (same bool, err error) {
	same = true
	for _, e := range list {
		if e == nil {
			return false, c.fail("%s is missing", what)
		}
		if t != dtype.Invalid && e.Type != t {
			return false, c.fail("%s is %s; it must be %s", what, e.Type, t)
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

// node checks one node of an expression. same is false if its value is not uniform even if
// its operands are.
func (c *checker) node(n scalar.Expr) (same bool, err error) {
	switch n.Op {
	case scalar.OpArg:
		return false, c.fail("operand %%%d is not allowed in a kernel", n.Ref)
	case scalar.OpVar:
		return c.variable(n)
	case scalar.OpLoad:
		a, err := c.access(n.Ref, 1, loads, n.Args[0])
		if err == nil && a.DType != n.Type {
			err = c.fail("a load of %s reads array %s of %s", n.Type, a.Name, a.DType)
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
		return false, c.fail("unknown variable %s", n.Name)
	case l.fragment:
		return false, c.fail("%s is a fragment", n.Name)
	case l.typ != n.Type:
		return false, c.fail("%s is %s here; it is defined as %s", n.Name, n.Type, l.typ)
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
			return false, c.fail("the kernel has no single subgroup size")
		}
	case BuiltinCounter:
		same = true
		if i >= c.k.Counters {
			return false, c.fail("unknown counter %s: the kernel has %d", n.Name, c.k.Counters)
		}
	case BuiltinScalar:
		same = true
		if i >= len(c.k.Scalars) || c.k.Scalars[i] == dtype.Invalid {
			return false, c.fail("unknown scalar %s", n.Name)
		}
		want = c.k.Scalars[i]
	}
	switch {
	case n.Type != want:
		return false, c.fail("%s is %s; it must be %s", n.Name, n.Type, want)
	case kind == BuiltinLane && c.k.Subgroup == [2]int{}:
		return false, c.fail("the kernel has no subgroup sizes")
	case n.Lo <= n.Hi && (n.Lo > lo || n.Hi < hi):
		return false, c.fail("%s has range %d to %d; it must be %d to %d", n.Name, n.Lo, n.Hi, lo, hi)
	}
	return same, nil
}

// statusWords is the length of the array to which [scalar.Check] reports.
const statusWords = 4

// status checks that the last storage array is the status words.
func (c *checker) status() error {
	i := c.k.StatusArray()
	if i < 0 {
		return c.fail("a checked index needs %d atomic u32 as last storage array", statusWords)
	}
	return nil
}

// StatusArray returns the index of the status words to which [scalar.Check] reports: the last
// storage array if it has their type, else -1.
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
