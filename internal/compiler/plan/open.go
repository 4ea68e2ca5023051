package plan

import (
	"maps"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/padding/padded"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
)

// Open is a module with open sizes, compiled ahead of time for some sizes: a plan for what has no
// open size, and plans for combinations of sizes, which share its parameters and states.
type Open struct {
	Name    string
	Entries []OpenEntry
	// Base has the entries without open sizes. Each plan, Base included, has an entry [HolderEntry], which
	// declares all parameters and states.
	Base *Plan
	// BaseFile is the plan file of Base, which DecodeOpen sets.
	BaseFile []byte
	Buckets  []Bucket
}

// HolderEntry is the name of the entry that declares the parameters and states of all entries.
const HolderEntry = "rlx.hold"

// OpenEntry describes an entry with open sizes.
type OpenEntry struct {
	Name string
	// Symbols are its symbols, sorted. Each is the size of an axis of an input.
	Symbols []string
	// Exact has, for each symbol, whether its true size must be that of a bucket.
	Exact []bool
	// Writes is set if a run changes parameters or states.
	Writes bool
	Inputs []OpenInput
	padded.Fit
}

// OpenInput is an input, some of whose sizes may be open.
type OpenInput struct {
	Name  string
	DType dtype.DType
	Shape ir.Shape
}

// Bucket is an entry compiled for one size of each symbol.
type Bucket struct {
	Entry int
	// Sizes are those of the symbols of the entry.
	Sizes []int
	Plan  *Plan
	// File is the plan file of the bucket, which DecodeOpen sets.
	File []byte
}

// Bound returns the sizes of a bucket by symbol.
func (e *OpenEntry) Bound(b *Bucket) map[string]int {
	out := make(map[string]int, len(e.Symbols))
	for i, s := range e.Symbols {
		out[s] = b.Sizes[i]
	}
	return out
}

// Serves reports whether a bucket of the entry computes calls of the true sizes.
func (e *OpenEntry) Serves(b *Bucket, sizes map[string]int) bool {
	for i, s := range e.Symbols {
		if e.Exact[i] && sizes[s] != b.Sizes[i] || !e.Exact[i] && sizes[s] < 1 {
			return false
		}
	}
	return e.Check(sizes, e.Bound(b)) == nil
}

// Choose returns the index of the smallest bucket of entry i that serves calls of the true sizes, -1
// if none does.
func (o *Open) Choose(i int, sizes map[string]int) int {
	best, smallest := -1, 0.0
	for at := range o.Buckets {
		b := &o.Buckets[at]
		if b.Entry != i || !o.Entries[i].Serves(b, sizes) {
			continue
		}
		volume := 1.0
		for _, n := range b.Sizes {
			volume *= float64(n)
		}
		if best < 0 || volume < smallest {
			best, smallest = at, volume
		}
	}
	return best
}

// Bucket returns the bucket of entry i with the given sizes, nil without one.
func (o *Open) Bucket(i int, bound map[string]int) *Bucket {
	at := slices.IndexFunc(o.Buckets, func(b Bucket) bool { return b.Entry == i && maps.Equal(o.Entries[i].Bound(&b), bound) })
	if at < 0 {
		return nil
	}
	return &o.Buckets[at]
}

// All returns a plan and its variants.
func (p *Plan) All() []*Plan { return append([]*Plan{p}, p.Variants...) }
