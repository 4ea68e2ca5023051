package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/loop"
)

// manyVariants is from how many values on a literal that equal groups differ in is a
// word in memory: to compile a few kernels more costs less than to load it in each
// run.
const manyVariants = 4

// variants are the values that each literal has in groups that are equal otherwise.
type variants []map[string]bool

// Learn notes a group that [Cache.Schedule] will be asked for: which of its literals
// have many values, as the keys of dropout in the layers of a model do, is known only
// once all of its kind have been seen.
func (c *Cache) Learn(g *fusion.Group, caps loop.Caps) {
	for _, part := range g.SideBySide() {
		if !part.HasRoom() {
			continue
		}
		canon := c.canons.Of(part)
		c.learned[part] = canon
		c.key(caps, canon.Text)
		v := c.forms[string(c.text)]
		if v == nil {
			v = make(variants, len(canon.Literals))
			for i := range v {
				v[i] = map[string]bool{}
			}
			c.forms[string(c.text)] = v
		}
		for i, l := range canon.Literals {
			v[i][l.Key] = true
		}
	}
}

// canonOf returns the canonical form of a group, which may be known.
func (c *Cache) canonOf(g *fusion.Group) *fusion.Canon {
	canon := c.learned[g]
	if delete(c.learned, g); canon == nil {
		canon = c.canons.Of(g)
	}
	return canon
}

// words tells which literals of a group are words; nil where none is.
func (c *Cache) words(g *fusion.Group, canon *fusion.Canon, caps loop.Caps) []bool {
	if !g.HasRoom() {
		return nil
	}
	var out []bool
	c.key(caps, canon.Text)
	for i, values := range c.forms[string(c.text)] {
		if len(values) < manyVariants {
			continue
		}
		if out == nil {
			out = make([]bool, len(canon.Literals))
		}
		out[i] = true
	}
	return out
}

// keyOf writes the key of the kernels of a group: its canonical form, and the literals that
// are no words.
func (c *Cache) keyOf(canon *fusion.Canon, caps loop.Caps, words []bool) {
	c.key(caps, canon.Text)
	for i, l := range canon.Literals {
		c.text = append(c.text, '\n')
		if words == nil || !words[i] {
			c.text = append(c.text, l.Key...)
		}
	}
}
