package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/loop"
)

// manyVariants is the minimum number of values of a literal, in which otherwise equal groups
// differ, for which it is passed in memory. Compiling a few more kernels costs less than loading the literal
// in every run.
const manyVariants = 4

// variants are the values of each literal over all groups with the same canonical form.
type variants []map[string]bool

// Learn records a group that [Cache.Schedule] will be called with. Which literals have many
// values (such as dropout keys over the layers of a model) is known only after all groups have
// been seen.
func (c *Cache) Learn(g *fusion.Group, caps loop.Caps) {
	for _, part := range g.HorizontalParts() {
		if !part.CanBindMore() {
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

// canonicalForm returns the canonical form of a group, reusing that of Learn.
func (c *Cache) canonicalForm(g *fusion.Group) *fusion.Canon {
	canon := c.learned[g]
	if delete(c.learned, g); canon == nil {
		canon = c.canons.Of(g)
	}
	return canon
}

// liftedLiterals returns which literals of a group are passed in memory, nil if none.
func (c *Cache) liftedLiterals(g *fusion.Group, canon *fusion.Canon, caps loop.Caps) []bool {
	if !g.CanBindMore() {
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

// keyOf writes the cache key of a group's kernels: its canonical form and the literals that are
// not passed in memory.
func (c *Cache) keyOf(canon *fusion.Canon, caps loop.Caps, words []bool) {
	c.key(caps, canon.Text)
	for i, l := range canon.Literals {
		c.text = append(c.text, '\n')
		if words == nil || !words[i] {
			c.text = append(c.text, l.Key...)
		}
	}
}
