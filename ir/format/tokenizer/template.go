package tokenizer

// template adds special tokens around texts: a post-processor.
type template interface {
	single(ids []int32) (out, types []int32)
	pair(first, second []int32) (out, types []int32)
}

// part is a part of a [pattern] of a template: special tokens, or one of the texts.
type part struct {
	text  int     // 0 or 1 for the first or second text, -1 for tokens
	ids   []int32 // of special tokens
	type_ int32
}

// partsTemplate lists the parts of one text and of a pair.
type partsTemplate struct{ one, two []part }

func (t partsTemplate) single(ids []int32) (out, types []int32) { return fill(t.one, ids, nil) }

func (t partsTemplate) pair(first, second []int32) (out, types []int32) {
	return fill(t.two, first, second)
}

func fill(parts []part, texts ...[]int32) (out, types []int32) {
	for _, p := range parts {
		ids := p.ids
		if p.text >= 0 {
			ids = texts[p.text]
		}
		out = append(out, ids...)
		for range ids {
			types = append(types, p.type_)
		}
	}
	return out, types
}

// plainTemplate adds nothing.
type plainTemplate struct{}

func (plainTemplate) single(ids []int32) (out, types []int32) { return ids, make([]int32, len(ids)) }

func (plainTemplate) pair(first, second []int32) (out, types []int32) {
	return fill([]part{{text: 0}, {text: 1, type_: 1}}, first, second)
}
