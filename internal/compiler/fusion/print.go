package fusion

import (
	"strconv"
	"strings"
)

// String formats the partition for people and golden files, one line per group: kind,
// outer sizes, inner sizes of a reduction, ops, and the tensors written. Horizontally
// fused parts and loop bodies are indented.
func (p *Partition) String() string {
	var w programWriter
	w.partition(p)
	return w.sb.String()
}

type programWriter struct {
	sb    strings.Builder
	depth int
}

func (w *programWriter) line(words ...string) {
	w.sb.WriteString(strings.Repeat("  ", w.depth) + strings.Join(words, " ") + "\n")
}

func (w *programWriter) partition(p *Partition) {
	for _, item := range p.Items {
		switch item := item.(type) {
		case *Group:
			w.group(item)
		case *Loop:
			w.line("loop of", strconv.Itoa(item.Count)+":", names(item.Reads()), "->", names(item.Writes()))
			w.nested(item.Body)
		case *Branch:
			w.line("if", item.Pred.Name+":", names(item.Reads()), "->", names(item.Writes()))
			w.nested(item.Taken[0])
			w.line("else:")
			w.nested(item.Taken[1])
		case *While:
			w.line("while", item.Pred.Name+":", names(item.Reads()), "->", names(item.Writes()))
			w.nested(item.Cond)
			w.line("do:")
			w.nested(item.Body)
		}
	}
}

func (w *programWriter) nested(p *Partition) {
	w.depth++
	w.partition(p)
	w.depth--
}

func (w *programWriter) group(g *Group) {
	if len(g.Parts) > 1 {
		w.line("side by side:")
		w.depth++
		for _, part := range g.Parts {
			w.group(part)
		}
		w.depth--
		return
	}
	for _, part := range g.HorizontalParts() {
		space := sizesText(part.Outer)
		if part.Kind == ReduceKind {
			space += " over " + sizesText(part.Inner)
		}
		w.line(part.Kind.String(), space+":", part.operations(), "->", names(part.Writes()))
	}
}

// operations lists the ops of a group in order.
func (g *Group) operations() string {
	var words []string
	for _, c := range g.Copies {
		from := "a literal"
		if c.From != nil {
			from = c.From.Name
		}
		words = append(words, "copy of "+from)
	}
	for _, m := range g.Members {
		words = append(words, string(m.Node.Op()))
	}
	return strings.Join(words, ", ")
}

func names(tensors []*Tensor) string {
	var words []string
	for _, t := range tensors {
		words = append(words, t.Name)
	}
	return strings.Join(words, " ")
}

func sizesText(dims []int) string {
	words := make([]string, len(dims))
	for i, d := range dims {
		words[i] = strconv.Itoa(d)
	}
	return "[" + strings.Join(words, " ") + "]"
}
