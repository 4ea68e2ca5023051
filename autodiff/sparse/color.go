package sparse

// Coloring assigns a color, from 0, to each column or row of a matrix.
type Coloring struct {
	Of     []int
	Colors int
}

// ColorColumns colors columns greedily, in order, so that two columns with an element in the same
// row have different colors. The product of the matrix with the sum of all columns of a color then
// contains each of their elements separately.
func (p *Pattern) ColorColumns() Coloring {
	t := p.Transposed()
	c := newGreedy(p.Columns)
	for j := range p.Columns {
		for _, i := range t.Rows[j] {
			for _, other := range p.Rows[i] {
				c.forbid(int(other), j)
			}
		}
		c.assign(j)
	}
	return c.result()
}

// ColorRows is [Pattern.ColorColumns] of the transposed matrix.
func (p *Pattern) ColorRows() Coloring { return p.Transposed().ColorColumns() }

// ColorStars colors the columns of a symmetric matrix so that neighbours differ and every path of
// four columns has at least three colors (a star coloring; Gebremedhin, Manne and Pothen, What
// Color Is Your Jacobian?, 2005, section 4). Each element can then be read from the products with
// the sums of all columns of a color, in its own row or in that of its mirror image. When v is
// colored last in a path, it is an end of the path or lies between two columns of one color; colors
// that would leave the path with two colors are forbidden.
func (p *Pattern) ColorStars() Coloring {
	c := newGreedy(p.Columns)
	for v := range p.Columns {
		around := map[int]int{} // number of neighbours by color
		for _, w := range p.Rows[v] {
			if int(w) != v && c.of[w] >= 0 {
				around[c.of[w]]++
				c.forbid(int(w), v)
			}
		}
		for _, w := range p.Rows[v] {
			if int(w) == v || c.of[w] < 0 {
				continue
			}
			for _, x := range p.Rows[w] {
				if int(x) != v && x != w && (around[c.of[w]] > 1 || p.extends(c.of, int(w), int(x))) {
					c.forbid(int(x), v)
				}
			}
		}
		c.assign(v)
	}
	return c.result()
}

// extends reports whether a path to w and on to x can be extended to a column with the color of
// w.
func (p *Pattern) extends(of []int, w, x int) bool {
	for _, y := range p.Rows[x] {
		if int(y) != w && int(y) != x && of[y] >= 0 && of[y] == of[w] {
			return true
		}
	}
	return false
}

// greedy assigns colors one column at a time.
type greedy struct {
	of        []int // -1 for none yet
	forbidden []int // by color: the last column that it was forbidden for
	colors    int
}

func newGreedy(n int) *greedy {
	c := &greedy{of: make([]int, n), forbidden: make([]int, n+1)}
	for i := range c.of {
		c.of[i] = -1
	}
	for i := range c.forbidden {
		c.forbidden[i] = -1
	}
	return c
}

// forbid forbids the color of another column for v.
func (c *greedy) forbid(other, v int) {
	if other != v && c.of[other] >= 0 {
		c.forbidden[c.of[other]] = v
	}
}

// assign assigns v the lowest color that is not forbidden.
func (c *greedy) assign(v int) {
	k := 0
	for c.forbidden[k] == v {
		k++
	}
	c.of[v] = k
	c.colors = max(c.colors, k+1)
}

func (c *greedy) result() Coloring { return Coloring{c.of, c.colors} }
