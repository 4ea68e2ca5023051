package loop

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Mbarrier is an array of barriers with phases in workgroup memory. A phase completes when all
// expected warps have arrived and all copies started in it are done. It is PTX's mbarrier (PTX
// ISA, "Parallel Synchronization and Communication Instructions: mbarrier").
type Mbarrier struct {
	Name string
	Len  int // number of barriers
	// Warps is the number of warps that arrive in a phase of a barrier.
	Warps int
}

// mbarrierBytes is the size of an mbarrier in shared memory.
const mbarrierBytes = 8

// Arrive signals barrier At of an [Mbarrier] for the executing warps: threads that wait for the
// end of the phase see their memory accesses. All threads of a workgroup, or of a [Role],
// execute it together.
type Arrive struct {
	Mbarrier int // index in [Kernel.Mbarriers]
	At       scalar.Expr
}

// Await waits for the end of a phase of barrier At. Phases count from 0; earlier ones are
// complete from the start. Phase must be the current phase or the one before it, because
// hardware only tracks parity. All threads of a workgroup, or of a [Role], execute it together.
type Await struct {
	Mbarrier  int
	At, Phase scalar.Expr
}

// Roles is warp specialisation: it gives the threads of a workgroup different programs that run
// concurrently. The first role has the first threads, and so on. It is not nested in a loop or
// branch. Within a role, rules about the threads of a workgroup apply to those of the role: a
// [Barrier] synchronises only them.
type Roles struct{ List []Role }

// Role is the program of consecutive threads, in whole warps.
type Role struct {
	Threads int
	Body    []Stmt
}

// maxRoles is the maximal number of roles: each needs a named barrier; CUDA has 16, one of them for
// the workgroup.
const maxRoles = 15

// objects checks the tensor maps and the mbarriers, whose names it adds to taken.
func (c *checker) objects(taken map[string]bool) error {
	for i := range c.k.TensorMaps {
		if err := c.checkTensorMap(&c.k.TensorMaps[i]); err != nil {
			return err
		}
	}
	for _, m := range c.k.Mbarriers {
		switch {
		case !isName(m.Name) || taken[m.Name]:
			return c.fail("invalid mbarrier name %q", m.Name)
		case m.Len < 1 || m.Warps < 1:
			return c.fail("mbarrier %s: length %d and %d warps must be positive", m.Name, m.Len, m.Warps)
		}
		taken[m.Name] = true
	}
	return nil
}

// mbarrier checks a statement on an mbarrier and its indices.
func (c *checker) mbarrier(number int, uniform bool, indices ...scalar.Expr) error {
	if _, inRole := c.path[0].(*Roles); !inRole {
		return c.fail("mbarrier outside of a role")
	}
	if err := c.requireUniform(uniform); err != nil {
		return err
	}
	if number < 0 || number >= len(c.k.Mbarriers) {
		return c.fail("unknown mbarrier %d", number)
	}
	same, err := c.exprs(dtype.I32, "the index", indices...)
	if err == nil && !same {
		err = c.fail("divergent index of an mbarrier; it must be uniform")
	}
	return err
}

func (c *checker) roles(s *Roles) error {
	total := 0
	for _, r := range s.List {
		if r.Threads < Warp || r.Threads%Warp != 0 {
			return c.fail("a role of %d threads must have whole warps", r.Threads)
		}
		total += r.Threads
	}
	switch {
	case len(c.path) > 1:
		return c.fail("roles must be at the top level")
	case len(s.List) > maxRoles:
		return c.fail("%d roles; the limit is %d", len(s.List), maxRoles)
	case total != c.k.Threads() || c.k.Workgroup[0] != total:
		return c.fail("the roles have %d threads; the workgroup is %d", total, c.k.Workgroup)
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
	// A variable that one role changes differs in the others.
	Walk([]Stmt{s}, func(s Stmt) {
		for _, name := range Assigns(s) {
			if l, ok := c.scope[name]; ok {
				c.vary(l.binding)
			}
		}
	})
	return nil
}
