package sparse

// Coloring gives each column, or each row, a colour from 0 on.
type Coloring struct {
	Of     []int
	Colors int
}

// ColorColumns gives columns that have an element in one row different colours, so
// that a product of the matrix with the sum of all columns of a colour holds each
// of their elements by itself. Columns are taken in order, each gets the least
// colour that is left.
func (p *Pattern) ColorColumns() Coloring {
	t := p.Transposed()
	c := newGreedy(p.Columns)
	for j := range p.Columns {
		for _, i := range t.Rows[j] {
			for _, other := range p.Rows[i] {
				c.forbid(int(other), j)
			}
		}
		c.take(j)
	}
	return c.result()
}

// ColorRows is ColorColumns of the transposed matrix.
func (p *Pattern) ColorRows() Coloring { return p.Transposed().ColorColumns() }

// ColorStars colours the columns of a symmetric matrix so that neighbours differ,
// and that every path of four columns has three colours: then each element can be
// read from the products with the sums of all columns of a colour, in its own row
// or in that of its mirror image (a star colouring, see Gebremedhin, Manne and
// Pothen, section 4). Of a path that gets its last colour at v, v is an end or
// between two columns of one colour: the colours that would leave it with two are
// forbidden.
func (p *Pattern) ColorStars() Coloring {
	c := newGreedy(p.Columns)
	for v := range p.Columns {
		around := map[int]int{} // how many neighbours have a colour
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
				if int(x) != v && x != w && (around[c.of[w]] > 1 || p.continues(c.of, int(w), int(x))) {
					c.forbid(int(x), v)
				}
			}
		}
		c.take(v)
	}
	return c.result()
}

// continues reports whether a path to w and on to x can go on to a column of w's
// colour.
func (p *Pattern) continues(of []int, w, x int) bool {
	for _, y := range p.Rows[x] {
		if int(y) != w && int(y) != x && of[y] >= 0 && of[y] == of[w] {
			return true
		}
	}
	return false
}

// greedy colours one after the other.
type greedy struct {
	of        []int // -1 for none yet
	forbidden []int // by colour: for whom it was forbidden last
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

// forbid keeps the colour of another from v.
func (c *greedy) forbid(other, v int) {
	if other != v && c.of[other] >= 0 {
		c.forbidden[c.of[other]] = v
	}
}

// take gives v the least colour that is not forbidden.
func (c *greedy) take(v int) {
	k := 0
	for c.forbidden[k] == v {
		k++
	}
	c.of[v] = k
	c.colors = max(c.colors, k+1)
}

func (c *greedy) result() Coloring { return Coloring{c.of, c.colors} }
