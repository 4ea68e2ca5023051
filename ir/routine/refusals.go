package routine

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Refusals is an immutable set of products that a library has no algorithm for. Nil is the
// empty set.
type Refusals struct{ products map[Product]bool }

// Has reports whether the set contains a product.
func (r *Refusals) Has(p Product) bool { return r != nil && r.products[p] }

// With returns the set with more products.
func (r *Refusals) With(products ...Product) *Refusals {
	more := &Refusals{map[Product]bool{}}
	if r != nil {
		maps.Copy(more.products, r.products)
	}
	for _, p := range products {
		more.products[p] = true
	}
	return more
}

// String returns a canonical text, equal exactly for equal sets.
func (r *Refusals) String() string {
	if r == nil {
		return "none"
	}
	var out []string
	for p := range r.products {
		var words []string
		for _, w := range p.Words() {
			words = append(words, strconv.Itoa(w))
		}
		out = append(out, strings.Join(words, ","))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
