package loop

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Mbarrier is a row of barriers in workgroup memory which go from phase to phase each. A
// phase is over when all warps have arrived that it waits for and all that was begun to be
// copied in it has. It is PTX's mbarrier (PTX ISA, "Parallel Synchronization and
// Communication Instructions: mbarrier").
type Mbarrier struct {
	Name string
	Len  int // how many barriers
	// Warps is how many warps arrive in a phase of one.
	Warps int
}

// mbarrierBytes is what a barrier takes of workgroup memory.
const mbarrierBytes = 8

// Arrive tells barrier At of an [Mbarrier] that the warps are here which come to it: who
// waits for the end of the phase sees what they have done. All threads of a workgroup, or
// of a [Role], come to it together.
type Arrive struct {
	Mbarrier int // number among [Kernel.Mbarriers]
	At       scalar.Expr
}

// Await waits for the end of a phase of barrier At. Phases count from 0; what comes before
// that is over from the beginning. It is the one under way or the one before it: hardware
// tells no more than two apart. All threads of a workgroup, or of a [Role], come to it
// together.
type Await struct {
	Mbarrier  int
	At, Phase scalar.Expr
}

// Roles gives the threads of a workgroup different work, side by side: the first role has
// the first threads, and so on. It stands in no loop or branch. In the body of a role all
// that is said of the threads of a workgroup is said of those of the role: a [Barrier] is
// theirs alone.
type Roles struct{ List []Role }

// Role is what some neighbouring threads do: whole warps.
type Role struct {
	Threads int
	Body    []Stmt
}

func (*Arrive) stmt() {}
func (*Await) stmt()  {}
func (*Roles) stmt()  {}

// each returns the roles with their bodies taken through f.
func (s *Roles) each(f func(body []Stmt) []Stmt) *Roles {
	out := &Roles{List: make([]Role, len(s.List))}
	for i, r := range s.List {
		out.List[i] = Role{r.Threads, f(r.Body)}
	}
	return out
}

// maxRoles is how many roles there may be: a named barrier for each, of 16 that CUDA has,
// one of which is that of the workgroup.
const maxRoles = 15

// objects checks the boxes and the mbarriers, whose names are taken then.
func (c *checker) objects(taken map[string]bool) error {
	for i := range c.k.Boxes {
		if err := c.checkBox(&c.k.Boxes[i]); err != nil {
			return err
		}
	}
	for _, m := range c.k.Mbarriers {
		switch {
		case !isName(m.Name) || taken[m.Name]:
			return c.fail("%q cannot be the name of an mbarrier", m.Name)
		case m.Len < 1 || m.Warps < 1:
			return c.fail("mbarrier %s is of %d for %d warps", m.Name, m.Len, m.Warps)
		}
		taken[m.Name] = true
	}
	return nil
}

// mbarrier checks a statement of a barrier, and the indices of it.
func (c *checker) mbarrier(number int, uniform bool, indices ...scalar.Expr) error {
	if _, inRole := c.path[0].(*Roles); !inRole {
		return c.fail("the threads have no role")
	}
	if err := c.together(uniform); err != nil {
		return err
	}
	if number < 0 || number >= len(c.k.Mbarriers) {
		return c.fail("there is no mbarrier %d", number)
	}
	same, err := c.exprs(dtype.I32, "the index", indices...)
	if err == nil && !same {
		err = c.fail("the threads name different places")
	}
	return err
}

func (c *checker) roles(s *Roles) error {
	total := 0
	for _, r := range s.List {
		if r.Threads < Warp || r.Threads%Warp != 0 {
			return c.fail("a role of %d threads is not of whole warps", r.Threads)
		}
		total += r.Threads
	}
	switch {
	case len(c.path) > 1:
		return c.fail("roles are given out in a loop or a branch")
	case len(s.List) > maxRoles:
		return c.fail("%d roles, the most are %d", len(s.List), maxRoles)
	case total != c.k.Threads() || c.k.Workgroup[0] != total:
		return c.fail("roles of %d threads for a workgroup of %d", total, c.k.Workgroup)
	}
	defer func() { c.first, c.threads = 0, c.k.Threads() }()
	c.first = 0
	for _, r := range s.List {
		c.threads = r.Threads
		if err := c.block(r.Body, true); err != nil {
			return err
		}
		c.first += r.Threads
	}
	// What a role has changed, the others have not.
	Walk([]Stmt{s}, func(s Stmt) {
		for _, name := range Assigns(s) {
			if l, ok := c.scope[name]; ok {
				c.vary(l.binding)
			}
		}
	})
	return nil
}
