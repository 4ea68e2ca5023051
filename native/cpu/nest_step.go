package cpu

// nestStep runs a nest on all cores.
type nestStep struct {
	n        *nest
	env      *environment
	machines []*machine
	chunk    int // blocks of one chunk
	chunks   int
}

// chunkCost is the nanoseconds that a chunk should take at least: less is not
// worth waking another core for.
const chunkCost = 15_000

func newNestStep(n *nest, env *environment) *nestStep {
	n.fuse(&env.kernels)
	n.reuse()
	s := &nestStep{n: n, env: env}
	units := n.units()
	chunks := min(units, int(n.cost/chunkCost), 8*workers())
	s.chunk = units
	if chunks > 1 {
		s.chunk = (units + chunks - 1) / chunks
	}
	if units > 0 {
		s.chunks = (units + s.chunk - 1) / s.chunk
	}
	count := 1
	if s.chunks > 1 {
		count = workers()
	}
	for range count {
		s.machines = append(s.machines, newMachine(n, env))
	}
	return s
}

func (s *nestStep) run(r *runner) {
	s.env.epoch++
	if s.chunks == 1 {
		s.do(0, 0)
		return
	}
	if s.chunks > 1 {
		r.job.run(s, s.chunks)
	}
}

func (s *nestStep) do(worker, chunk int) {
	first := chunk * s.chunk
	s.machines[worker].span(first, min(first+s.chunk, s.n.units()))
}
