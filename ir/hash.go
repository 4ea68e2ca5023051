package ir

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"io"
)

// Hash identifies the structure of a graph, see [Graph.Hash].
type Hash [16]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return encodeHex(h[:]) }

// Hash returns a digest of all that decides what a graph computes and how it
// is run: ports and outputs with their names, ops, attributes, literals, types
// and subgraphs, in their order. Labels, places and the names of graphs do not
// count. It is the same in every process and on every machine, and changes
// between releases only where an op or its attributes do. Being FNV-1a of 128
// bits it tells graphs apart by accident, not by intent: it is no protection
// against somebody who makes two graphs collide.
func (g *Graph) Hash() Hash {
	h := fnv.New128a()
	(&digest{h}).graph(g)
	var out Hash
	h.Sum(out[:0])
	return out
}

// Equal reports whether two graphs agree in all that [Graph.Hash] counts.
func (g *Graph) Equal(h *Graph) bool {
	var a, b bytes.Buffer
	(&digest{&a}).graph(g)
	(&digest{&b}).graph(h)
	return bytes.Equal(a.Bytes(), b.Bytes())
}

// digest writes what counts of a graph, as items that each end where they say,
// so that no two graphs write the same. Neither a hash nor a buffer fails.
type digest struct{ w io.Writer }

func (d *digest) int(n int) {
	var buf [8]byte
	binary.LittleEndian.PutUint64(buf[:], uint64(n))
	d.w.Write(buf[:])
}

func (d *digest) text(s string) { d.bytes([]byte(s)) }

func (d *digest) bytes(b []byte) {
	d.int(len(b))
	d.w.Write(b)
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
