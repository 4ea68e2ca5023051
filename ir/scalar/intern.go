package scalar

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
)

// interner performs hash consing: it makes one node for each structure, so that equal structures
// are equal pointers.
type interner struct {
	home    *home
	table   []*interned     // open addressing by hash, linear probing
	count   int             // of nodes in the table
	foreign map[*Node]*Node // its nodes for nodes of others that are deep, see isDeep
}

// home identifies an interner. Nodes refer to it and not to the interner, which they often outlive.
type home struct{ _ byte }

// interned is a node of an interner, with cached facts about it.
type interned struct {
	Node
	home *home
	args [3]Expr // the memory of Args
	fact fact
}

func newInterner() *interner { return &interner{home: new(home)} }

// owns reports whether n is a node of the interner.
func (in *interner) owns(n *Node) bool { return n.own != nil && n.own.home == in.home }

// intern returns the interner's node with the structure of e, at any depth.
func (in *interner) intern(e *Node) *Node {
	if in.owns(e) {
		return e
	}
	if len(e.Args) == 0 {
		return in.leaf(e)
	}
	if !in.isDeep(e, 2) {
		return in.node(e) // looking it up again is cheaper than a map entry
	}
	n, ok := in.foreign[e]
	if !ok {
		if in.foreign == nil {
			in.foreign = map[*Node]*Node{}
		}
		n = in.node(e)
		in.foreign[e] = n
	}
	return n
}

// isDeep reports whether e has operations of other owners more than the given number of levels
// below it.
func (in *interner) isDeep(e *Node, levels int) bool {
	for _, a := range e.Args {
		if len(a.Args) > 0 && !in.owns(a) && (levels == 1 || in.isDeep(a, levels-1)) {
			return true
		}
	}
	return false
}

// node returns the interner's node with the structure of e, which has operands.
func (in *interner) node(e *Node) *Node {
	var args [3]Expr
	for i, a := range e.Args {
		args[i] = in.intern(a)
	}
	return in.operation(e.Op, e.Type, e.Ref, args[:len(e.Args)])
}

// operation returns the interner's node of an operation on nodes of the interner.
func (in *interner) operation(op Op, t dtype.DType, ref int, args []Expr) *Node {
	like := Node{Op: op, Type: t, Ref: ref, Args: args}
	hash := mix(mix(uint64(op)<<8|uint64(t), uint64(ref)), uint64(len(args)))
	for _, a := range args {
		hash = mix(hash, uint64(a.own.fact.hash))
	}
	at := in.find(uint32(hash>>32), &like)
	x := in.table[at]
	if x == nil {
		x = &interned{Node: Node{Op: op, Type: t, Ref: ref}}
		x.Args = x.args[:copy(x.args[:], args)]
		in.insert(x, at, uint32(hash>>32))
	}
	return &x.Node
}

// leaf returns the interner's node with the structure of e, which has no operands.
func (in *interner) leaf(e *Node) *Node {
	hash := mix(mix(uint64(e.Op)<<8|uint64(e.Type), e.Bits), uint64(e.Ref))
	hash = mix(mix(hash, uint64(e.Lo)), uint64(e.Hi))
	for i := range len(e.Name) {
		hash = mix(hash, uint64(e.Name[i]))
	}
	at := in.find(uint32(hash>>32), e)
	x := in.table[at]
	if x == nil {
		x = &interned{Node: *e}
		in.insert(x, at, uint32(hash>>32))
	}
	return &x.Node
}

// Mark returns a cheap 32-bit hash. Nodes that a [Simplifier] made for one structure have the same
// mark.
func (n *Node) Mark() uint32 {
	if n.own != nil {
		return n.own.fact.hash
	}
	return uint32(mix(uint64(n.Op), n.Bits) >> 32)
}

// mix returns a hash of h and x by multiplicative hashing (Knuth, The Art of Computer Programming
// 3, 6.4): the upper half is the better one.
func mix(h, x uint64) uint64 {
	const prime = 0x9e3779b97f4a7c15 // 2⁶⁴ divided by the golden ratio
	h = (h ^ x) * prime
	return h ^ h>>32
}

// minTableSize is the initial table size: many interners see one expression.
const minTableSize = 32

// find returns the table index of the node equal to n, whose operands are nodes of the interner, or
// the free index where it belongs. There is always a free entry.
func (in *interner) find(hash uint32, n *Node) int {
	if in.count >= len(in.table)*3/4 {
		in.grow()
	}
	last := len(in.table) - 1
	at := int(hash) & last
	for {
		x := in.table[at]
		if x == nil || x.fact.hash == hash && sameFields(&x.Node, n) {
			return at
		}
		at = (at + 1) & last
	}
}

func (in *interner) grow() {
	old := in.table
	in.table = make([]*interned, max(minTableSize, 2*len(old)))
	last := len(in.table) - 1
	for _, x := range old {
		if x == nil {
			continue
		}
		at := int(x.fact.hash) & last
		for in.table[at] != nil {
			at = (at + 1) & last
		}
		in.table[at] = x
	}
}

// sameFields reports whether two nodes with identical operand pointers are equal.
func sameFields(a, b *Node) bool {
	return a.Op == b.Op && a.Type == b.Type && a.Bits == b.Bits && a.Ref == b.Ref && a.Lo == b.Lo && a.Hi == b.Hi &&
		a.Name == b.Name && slices.Equal(a.Args, b.Args)
}

// insert inserts a new node.
func (in *interner) insert(x *interned, at int, hash uint32) {
	x.home, x.own, x.fact.hash = in.home, x, hash
	in.table[at] = x
	in.count++
}

// Equal reports whether a and b have the same structure. Constants are equal if their bits are;
// operands are not commuted or simplified.
func Equal(a, b Expr) bool {
	in := newInterner()
	return in.intern(a) == in.intern(b)
}

// Key returns a string that is the same for two expressions if and only if they are Equal. Its
// length is proportional to the number of distinct nodes.
func Key(e Expr) string {
	in := newInterner()
	number := map[*Node]int{}
	var b strings.Builder
	Walk(in.intern(e), func(n Expr) {
		number[n] = len(number)
		writeKey(&b, n, number)
	})
	return b.String()
}

// writeKey appends the fields of n, operands by number.
func writeKey(b *strings.Builder, n *Node, number map[*Node]int) {
	field := func(x int64) {
		b.WriteByte(' ')
		b.WriteString(strconv.FormatInt(x, 36))
	}
	b.WriteString(n.Op.String())
	b.WriteByte('.')
	b.WriteString(n.Type.String())
	switch n.Op {
	case OpConst:
		field(int64(n.Bits))
	case OpArg, OpLoad, OpCheck:
		field(int64(n.Ref))
	case OpVar:
		b.WriteByte(' ')
		b.WriteString(strconv.Quote(n.Name))
		field(n.Lo)
		field(n.Hi)
	}
	for _, a := range n.Args {
		field(int64(number[a]))
	}
	b.WriteByte(';')
}

// Hash returns a 64-bit hash of Key(e), the same in every process.
func Hash(e Expr) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for _, c := range []byte(Key(e)) {
		h = (h ^ uint64(c)) * prime
	}
	return h
}

// withArgs returns n with its operands mapped by f and the operation unchanged, without calling its
// constructor; n itself if no operand changes.
func withArgs(n *Node, f func(*Node) Expr) Expr {
	args, changed := mapArgs(n, f)
	if !changed {
		return n
	}
	return operation(n.Op, n.Type, n.Ref, args[:len(n.Args)])
}

// rebuilt is withArgs that calls the constructor of the operation.
func rebuilt(n *Node, f func(*Node) Expr) Expr {
	args, changed := mapArgs(n, f)
	if !changed {
		return n
	}
	return Rebuild(n, args[:len(n.Args)]...)
}

// mapArgs returns the operands of n mapped by f, and whether any changed.
func mapArgs(n *Node, f func(*Node) Expr) (args [3]Expr, changed bool) {
	for i, a := range n.Args {
		args[i] = f(a)
		changed = changed || args[i] != a
	}
	return args, changed
}
