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

// interner makes one node of its own for each structure it meets, so that within it
// equal structures are equal pointers.
type interner struct {
	home   *home
	leaves map[leafShape]*Node
	nodes  map[shape]*Node
	met    map[*Node]*Node // its nodes for others' whose operands are not its own
}

// home tells interners apart. Nodes refer to it, and not to the interner: they often
// outlive it.
type home struct{ _ byte }

// interned is a node of an interner, with what is known about it there.
type interned struct {
	Node
	home *home
	fact fact
}

func newInterner() *interner {
	return &interner{
		home: new(home), leaves: map[leafShape]*Node{}, nodes: map[shape]*Node{}, met: map[*Node]*Node{},
	}
}

// owns reports whether n is a node of the interner.
func (in *interner) owns(n *Node) bool { return n.own != nil && n.own.home == in.home }

// tree returns the one node with the structure of e, at any depth.
func (in *interner) tree(e *Node) *Node {
	switch {
	case in.owns(e):
		return e
	case len(e.Args) == 0:
		return in.leaf(e)
	case slices.ContainsFunc(e.Args, func(a *Node) bool { return len(a.Args) > 0 && !in.owns(a) }):
		n, ok := in.met[e]
		if !ok {
			n = in.node(e)
			in.met[e] = n
		}
		return n
	}
	return in.node(e)
}

// node returns the one node with the structure of e, which has operands.
func (in *interner) node(e *Node) *Node {
	s := shape{op: e.Op, typ: e.Type, ref: e.Ref}
	for i, a := range e.Args {
		s.args[i] = in.tree(a)
	}
	n, ok := in.nodes[s]
	if !ok {
		n = in.adopt(e)
		if args := s.args[:len(e.Args)]; !slices.Equal(args, e.Args) {
			n.Args = slices.Clone(args)
		}
		in.nodes[s] = n
	}
	return n
}

// leaf returns the one node with the structure of e, which has no operands.
func (in *interner) leaf(e *Node) *Node {
	s := leafShape{op: e.Op, typ: e.Type, bits: e.Bits, ref: e.Ref, name: e.Name, lo: e.Lo, hi: e.Hi}
	n, ok := in.leaves[s]
	if !ok {
		n = in.adopt(e)
		in.leaves[s] = n
	}
	return n
}

// adopt returns a node of the interner that is as n is.
func (in *interner) adopt(n *Node) *Node {
	x := &interned{Node: *n, home: in.home}
	x.own = x
	return &x.Node
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
	c.Args, c.own = args, nil
	return &c
}
