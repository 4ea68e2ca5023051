package clang

import (
	"fmt"
	"strings"

	"github.com/rlx-go/rlx/internal/compiler/plan"
)

// Batch combines the kernels of several plans in one source, which compiles much faster
// than each alone: each kernel has a namespace and a unique name. Kernels that differ only
// in their names and in numbers are included once.
type Batch struct {
	text strings.Builder
	seen map[string]bool // sources without names and digits
}

// Add adds the kernels of a plan; prefix begins the names of their functions, and name
// identifies the plan in compiler messages.
func (b *Batch) Add(name, prefix string, p *plan.Plan) {
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	for i, k := range p.Kernels {
		function := " " + prefix + k.Name + "("
		words := strings.Map(dropDigits, strings.Replace(k.Source, function, " (", 1))
		if b.seen[words] {
			continue
		}
		b.seen[words] = true
		unique := fmt.Sprintf("%s_%d", name, i)
		source := strings.Replace(k.Source, function, " "+unique+"(", 1)
		fmt.Fprintf(&b.text, "namespace in_%s {\n%s}\n", unique, source)
	}
}

// Len returns the length of the source in bytes.
func (b *Batch) Len() int { return b.text.Len() }

// Take returns the source and begins another, without the kernels of this one.
func (b *Batch) Take() string {
	defer b.text.Reset()
	return b.text.String()
}

// String returns the source.
func (b *Batch) String() string { return b.text.String() }

func dropDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}
