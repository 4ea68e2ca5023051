package ir

import (
	"encoding/binary"
	"encoding/hex"
	"hash"
	"hash/fnv"
)

// Hash identifies the structure of a graph, see [Graph.Hash].
type Hash [16]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Hash returns a digest of all that decides what a graph computes and how it
// is run: ports and outputs with their names, ops, attributes, literals, types
// and subgraphs, in their order. Labels, places and the names of graphs do not
// count. It is the same in every process and on every machine, and changes
// between releases only where an op or its attributes do. Being FNV-1a of 128
// bits it tells graphs apart by accident, not by intent: it is no protection
// against somebody who makes two graphs collide.
func (g *Graph) Hash() Hash {
	d := &digest{h: fnv.New128a()}
	d.graph(g)
	var out Hash
	d.h.Sum(out[:0])
	return out
}

// digest feeds a hash with items that each end where they say, so that no two
// graphs feed it the same bytes.
type digest struct{ h hash.Hash }

func (d *digest) int(n int) {
	var buf [8]byte
	binary.LittleEndian.PutUint64(buf[:], uint64(n))
	d.h.Write(buf[:])
}

func (d *digest) text(s string) { d.bytes([]byte(s)) }

func (d *digest) bytes(b []byte) {
	d.int(len(b))
	d.h.Write(b)
}

func (d *digest) value(v Value) {
	d.int(v.node.id)
	d.int(v.index)
}

func (d *digest) graph(g *Graph) {
	d.int(len(g.nodes))
	for _, n := range g.nodes {
		d.node(n)
	}
	d.int(len(g.outputs))
	for _, o := range g.outputs {
		d.text(o.Name)
		if o.State {
			d.int(1)
		} else {
			d.int(0)
		}
		d.value(o.Value)
	}
}

func (d *digest) node(n *Node) {
	d.text(string(n.op))
	switch a := n.attrs.(type) {
	case *PortAttrs:
		d.text(a.Name)
		d.int(int(a.Kind))
	case *ConstantAttrs:
		d.bytes(a.Data)
	default:
		d.text(FormatAttrs(n.attrs))
	}
	d.int(len(n.inputs))
	for _, v := range n.inputs {
		d.value(v)
	}
	d.int(len(n.types))
	for _, t := range n.types {
		d.text(t.String())
	}
	d.int(len(n.subs))
	for _, s := range n.subs {
		d.graph(s)
	}
}
