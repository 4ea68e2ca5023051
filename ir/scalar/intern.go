package scalar

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
)

// shape is all that a node with operands is, the operands as pointers. Within
// one interner, equal structures have equal shapes.
type shape struct {
	op   Op
	typ  dtype.DType
	ref  int
	args [3]*Node
}

// leafShape is all that a node without operands is.
type leafShape struct {
	op     Op
	typ    dtype.DType
	bits   uint64
	ref    int
	name   string
	lo, hi int64
}

// interner keeps one node for each structure it has met, so that within it
// equal structures are equal pointers.
type interner struct {
	leaves map[leafShape]*Node
	nodes  map[shape]*Node
	done   map[*Node]*Node // the interned form of a node
}

func newInterner() *interner {
	return &interner{leaves: map[leafShape]*Node{}, nodes: map[shape]*Node{}, done: map[*Node]*Node{}}
}

// node returns the one node with the structure of n, whose operands must have
// come from node too.
func (in *interner) node(n *Node) *Node {
	if len(n.Args) == 0 {
		s := leafShape{op: n.Op, typ: n.Type, bits: n.Bits, ref: n.Ref, name: n.Name, lo: n.Lo, hi: n.Hi}
		return intern(in.leaves, s, n)
	}
	s := shape{op: n.Op, typ: n.Type, ref: n.Ref}
	copy(s.args[:], n.Args)
	return intern(in.nodes, s, n)
}

func intern[S comparable](known map[S]*Node, s S, n *Node) *Node {
	if old, ok := known[s]; ok {
		return old
	}
	known[s] = n
	return n
}

// tree returns the one node with the structure of e, at any depth.
func (in *interner) tree(e *Node) *Node {
	if n, ok := in.done[e]; ok {
		return n
	}
	n := in.node(withArgs(e, in.tree))
	in.done[e], in.done[n] = n, n
	return n
}

// Equal reports whether a and b have the same structure. Constants are equal if
// their bits are; nothing is commuted or simplified.
func Equal(a, b Expr) bool {
	in := newInterner()
	return in.tree(a) == in.tree(b)
}

// Key returns a string that is the same for two expressions if and only if they
// are Equal. Its length grows with the number of distinct nodes.
func Key(e Expr) string {
	in := newInterner()
	number := map[*Node]int{}
	var b strings.Builder
	Walk(in.tree(e), func(n Expr) {
		number[n] = len(number)
		writeKey(&b, n, number)
	})
	return b.String()
}

// writeKey appends the fields that tell n from other nodes, operands by number.
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

// withArgs returns n with its operands mapped by f and the operation unchanged,
// not passed through its constructor; n itself if no operand changes.
func withArgs(n *Node, f func(*Node) Expr) Expr {
	var args []Expr
	for i, a := range n.Args {
		b := f(a)
		if b != a && args == nil {
			args = slices.Clone(n.Args)
		}
		if args != nil {
			args[i] = b
		}
	}
	if args == nil {
		return n
	}
	c := *n
	c.Args = args
	return &c
}
