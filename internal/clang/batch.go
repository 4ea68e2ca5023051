package clang

import (
	"fmt"
	"strings"

	"github.com/rlx-go/rlx/internal/compiler/plan"
)

// Batch is the kernels of several plans as one source, which a compiler takes in a fraction
// of the time: each in a namespace, with a name of its own. Of kernels that differ in
// numbers alone it has one.
type Batch struct {
	text strings.Builder
	seen map[string]bool // without digits
}

// Add adds the kernels of a plan; prefix comes before a kernel's name in that of its
// function, name tells the plan in the compiler's messages.
func (b *Batch) Add(name, prefix string, p *plan.Plan) {
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	for i, k := range p.Kernels {
		words := strings.Map(dropDigits, k.Source)
		if b.seen[words] {
			continue
		}
		b.seen[words] = true
		unique := fmt.Sprintf("%s_%d", name, i)
		source := strings.Replace(k.Source, " "+prefix+k.Name+"(", " "+unique+"(", 1)
		fmt.Fprintf(&b.text, "namespace in_%s {\n%s}\n", unique, source)
	}
}

// String returns the source.
func (b *Batch) String() string { return b.text.String() }

func dropDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}
