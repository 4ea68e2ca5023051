package ir

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"io"
)

// Hash identifies the structure of a graph: see [Graph.Hash].
type Hash [16]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return encodeHex(h[:]) }

// Hash returns a digest of everything that determines the computation and interface of a graph:
// ports and outputs with their names, ops, attributes, literals, types and subgraphs, in order.
// Labels, positions and graph names are ignored. The hash is the same in every process and on every
// machine, and changes between releases only if an op or its attributes change. It is FNV-1a of 128
// bits and does not resist deliberate collisions.
func (g *Graph) Hash() Hash {
	h := fnv.New128a()
	(&digest{h}).graph(g)
	var out Hash
	h.Sum(out[:0])
	return out
}

// Equal reports whether two graphs have the same structure, in the sense of [Graph.Hash].
func (g *Graph) Equal(h *Graph) bool {
	var a, b bytes.Buffer
	(&digest{&a}).graph(g)
	(&digest{&b}).graph(h)
	return bytes.Equal(a.Bytes(), b.Bytes())
}

// digest writes the structure of a graph. Each item is delimited or has a fixed length, so that
// different graphs write different bytes. Hashes and buffers return no write errors.
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
