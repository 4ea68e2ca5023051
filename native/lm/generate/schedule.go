package generate

import (
	"context"
	"slices"
	"sort"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/native"
)

// slot holds one sequence.
type slot struct {
	number int
	r      *request // nil if it is free
	fed    int      // tokens of r.fill whose runs have started
	reused int      // those that were in the cache
	past   int      // positions of keys and values whose runs have started
	pages  []int32  // of the cache, that hold positions in order
	// cached are the tokens of the first positions, set when a request ends.
	cached []int32
	used   time.Time // when it became free
}

// flight is a run whose results have not been read.
type flight struct {
	run   native.Run
	slots []*slot
	of    []*request // requests of the slots at its start, and their turns
	turns []int
	draft []int32 // draft of a verification
	final bool    // the results are tokens
}

// loop serves requests until the engine is closed or a run fails.
func (e *Engine) loop(ctx context.Context) {
	defer close(e.done)
	l := &scheduler{e: e, ctx: ctx, slots: make([]*slot, e.options.Slots)}
	for i := range e.options.pages() {
		l.free = append(l.free, int32(i))
	}
	for i := range l.slots {
		l.slots[i] = &slot{number: i}
	}
	for {
		if err := l.step(); err != nil {
			e.fail(err)
			l.end(err)
			return
		}
	}
}

// scheduler is the state of the loop.
type scheduler struct {
	e       *Engine
	ctx     context.Context
	slots   []*slot
	flights []*flight
	waiting []*request
	free    []int32 // pages that no slot has
	order   int     // of the last admission
	fills   bool    // the last run was of a prompt
}

// step starts a run, or reads the results of the oldest one, or waits for a request.
func (l *scheduler) step() error {
	if err := l.admit(); err != nil {
		return err
	}
	if len(l.flights) < l.e.options.InFlight {
		f, err := l.next()
		if err != nil {
			return err
		}
		if f != nil {
			l.flights = append(l.flights, f)
			return nil
		}
	}
	if len(l.flights) > 0 {
		f := l.flights[0]
		l.flights = l.flights[1:]
		return l.read(f)
	}
	<-l.e.wake
	return nil
}

// admit frees the slots of requests whose callers have gone, and assigns free slots to waiting
// requests.
func (l *scheduler) admit() error {
	l.e.mu.Lock()
	l.waiting = append(l.waiting, l.e.waiting...)
	l.e.waiting = nil
	failed := l.e.failed
	l.e.mu.Unlock()
	if failed != nil {
		return failed
	}
	for _, s := range l.slots {
		if s.r != nil && s.r.ctx.Err() != nil {
			s.r.fail(s.r.ctx.Err())
			s.free()
		}
	}
	full := false // later requests do not overtake
	l.waiting = slices.DeleteFunc(l.waiting, func(r *request) bool {
		if err := r.ctx.Err(); err != nil {
			r.fail(err)
			return true
		}
		full = full || !l.place(r)
		return !full
	})
	return nil
}

// place gives a request a slot, and pages for the tokens to process and the next one. It reports false if
// there is no slot or there are not enough pages.
func (l *scheduler) place(r *request) bool {
	s := l.slotFor(r)
	if s == nil || !l.fits(s, len(r.fill)+1) {
		return false
	}
	if r.turn++; r.order == 0 {
		l.order++
		r.order = l.order
	}
	s.take(r, l.common(s, r))
	return l.grow(s, len(r.fill)+1)
}

// slotFor returns the free slot with the longest prefix in common with the prompt, among equal ones
// the one free for longest; nil if there is none.
func (l *scheduler) slotFor(r *request) *slot {
	var best *slot
	most := 0
	for _, s := range l.slots {
		if s.r != nil {
			continue
		}
		if n := l.common(s, r); best == nil || n > most || n == most && s.used.Before(best.used) {
			best, most = s, n
		}
	}
	return best
}

// common returns the number of tokens to process whose keys and values are in a slot. The last token is
// always computed, for its logits; all are if penalties count them.
func (l *scheduler) common(s *slot, r *request) int {
	if l.e.options.NoReuse || r.penalises() || len(r.result) > 0 && !r.drafts() {
		return 0
	}
	n := 0
	for n < min(len(s.cached), len(r.fill)-1) && s.cached[n] == r.fill[n] {
		n++
	}
	return n
}

// take starts a request in a slot that already holds its first reused positions.
func (s *slot) take(r *request, reused int) {
	s.r, s.fed, s.past, s.reused, s.cached = r, reused, reused, reused, nil
	if len(r.result) == 0 {
		now := time.Now()
		r.stats.Waited, r.stats.Reused, r.since = r.stats.Waited+now.Sub(r.since), reused, now
	}
}

// free ends the slot's request.
func (s *slot) free() {
	r := s.r
	all := slices.Concat(r.prompt, r.result)
	s.r, s.cached, s.used = nil, all[:min(len(all), s.past)], time.Now()
}

// next starts the next run, alternating between prompts and results if there are both. It returns
// nil if every slot waits for the results of earlier runs.
func (l *scheduler) next() (*flight, error) {
	fill := slices.IndexFunc(l.slots, func(s *slot) bool { return s.r != nil && s.fed < len(s.r.fill) })
	var ready []*slot
	for _, s := range l.slots {
		if s.r != nil && s.fed == len(s.r.fill) && l.canDecode(s) {
			ready = append(ready, s)
		}
	}
	if fill >= 0 && (!l.fills || len(ready) == 0) {
		l.fills = true
		return l.prefill(l.slots[fill])
	}
	l.fills = false
	ready = l.growAll(ready)
	if len(ready) == 0 {
		return nil, nil
	}
	for _, s := range ready {
		draft, err := l.draft(s)
		if err != nil {
			return nil, err
		}
		if len(draft) > 0 {
			return l.verify(s, draft)
		}
	}
	return l.decode(ready)
}

// canDecode reports whether the next token of a slot can be computed now. Where the host needs the
// last token to decide, it waits for it.
func (l *scheduler) canDecode(s *slot) bool {
	r := s.r
	if r.issued == r.limit || s.past >= l.e.options.Context {
		return false
	}
	return r.flying == 0 || r.Allow == nil && !l.drafts(r)
}

func (l *scheduler) drafts(r *request) bool { return l.e.options.Draft > 0 && r.drafts() }

// draft returns a proposal for the next tokens of a slot, or none.
func (l *scheduler) draft(s *slot) ([]int32, error) {
	if !l.drafts(s.r) {
		return nil, nil
	}
	tokens, n := slices.Concat(s.r.prompt, s.r.result), min(l.e.options.Draft, s.r.limit-len(s.r.result)-1)
	if !l.fits(s, s.past+n+1) || !l.grow(s, s.past+n+1) {
		return nil, nil
	}
	if l.e.drafter == nil {
		return lookup(tokens, n), nil
	}
	draft, err := l.e.drafter.propose(l.ctx, s.number, tokens, n)
	if i := slices.IndexFunc(draft, func(id int32) bool { return int(id) >= l.e.model.Config.Vocabulary }); i >= 0 {
		draft = draft[:i]
	}
	return draft, err
}

// start starts a run of an entry for slots.
func (l *scheduler) start(entry string, in rlx.Inputs, f *flight) (*flight, error) {
	for _, s := range f.slots {
		f.of, f.turns = append(f.of, s.r), append(f.turns, s.r.turn)
		s.r.flying++
	}
	var err error
	f.run, err = l.e.program.Run(l.ctx, entry, in)
	return f, err
}

// prefill starts the run of the next tokens of a prompt.
func (l *scheduler) prefill(s *slot) (*flight, error) {
	r, chunk := s.r, l.e.options.Chunk
	tokens := make([]int32, chunk)
	n := copy(tokens, r.fill[s.fed:])
	flag := func(set bool) int32 {
		if set {
			return 1
		}
		return 0
	}
	final := s.fed+n == len(r.fill)
	in := l.sampling([]*request{r}, final)
	in["tokens"], in["count"] = rlx.Int32s(tokens, 1, chunk), rlx.Int32s([]int32{int32(n)}, 1)
	in["row"], in["past"], in["table"] = rlx.Int32s([]int32{int32(s.number)}, 1), rlx.Int32s([]int32{int32(s.past)}, 1), l.table(1, s)
	in["first"], in["final"] = rlx.Int32(flag(s.fed == s.reused)), rlx.Int32(flag(final))
	in["generated"] = rlx.Int32(int32(len(r.prompt) - s.fed))
	s.fed, s.past = s.fed+n, s.past+n
	if final {
		r.issued++
	}
	return l.start(prefillEntry, in, &flight{slots: []*slot{s}, final: final})
}

// decode starts the run of the next token of some slots.
func (l *scheduler) decode(ready []*slot) (*flight, error) {
	n := l.e.rows[sort.SearchInts(l.e.rows, len(ready))]
	row, past, given, of := make([]int32, n), make([]int32, n), make([]int32, n), make([]*request, n)
	for i := range n {
		row[i], past[i], given[i] = int32(len(l.slots)), -1, -1 // padding
	}
	for i, s := range ready {
		row[i], past[i], of[i] = int32(s.number), int32(s.past), s.r
		if l.drafts(s.r) {
			given[i] = s.r.result[len(s.r.result)-1]
		}
	}
	in := l.sampling(of, true)
	in["row"], in["past"], in["given"] = rlx.Int32s(row, n), rlx.Int32s(past, n), rlx.Int32s(given, n)
	in["table"] = l.table(n, ready...)
	for _, s := range ready {
		s.past++
		s.r.issued++
	}
	return l.start(decodeEntry(n), in, &flight{slots: ready, final: true})
}

// verify starts a run that compares a draft with the tokens of the model.
func (l *scheduler) verify(s *slot, draft []int32) (*flight, error) {
	n := l.e.options.Draft + 1
	tokens := make([]int32, n)
	tokens[0] = s.r.result[len(s.r.result)-1]
	copy(tokens[1:], draft)
	in := l.sampling(slices.Repeat([]*request{s.r}, n), true)
	in["tokens"], in["past"], in["table"] = rlx.Int32s(tokens, 1, n), rlx.Int32s([]int32{int32(s.past)}, 1), l.table(1, s)
	return l.start(verifyEntry, in, &flight{slots: []*slot{s}, draft: draft, final: true})
}

// sampling returns the sampling inputs for rows of requests, some of which may be nil. Consecutive rows
// of one request get its next random numbers. Without draws the tokens do not matter.
func (l *scheduler) sampling(of []*request, draws bool) rlx.Inputs {
	rows, words := len(of), l.e.words
	by, allowed := make([]float32, 0, rows*lm.SamplingFields), make([]uint32, rows*words)
	biased, biases := make([]int32, rows*maxBiases), make([]float32, rows*maxBiases)
	for i := range biased {
		biased[i] = -1
	}
	next := 0
	for i, r := range of {
		if next++; i == 0 || of[i-1] != r {
			next = 0
		}
		var options lm.Sampling
		random, row := 0., allowed[i*words:][:words]
		if r != nil && r.Allow != nil && draws {
			if len(r.result) == 0 {
				r.mayFollow()
			}
			copy(row, r.allowed)
		} else {
			for w := range row {
				row[w] = 1<<32 - 1
			}
		}
		if r != nil && draws {
			options, random = r.Sampling, r.number(r.issued+next)
			at := i * maxBiases
			for id, x := range r.Bias {
				biased[at], biases[at] = id, x
				at++
			}
		}
		fields := options.Row(random)
		by = append(by, fields[:]...)
	}
	return rlx.Inputs{
		"by": rlx.Float32s(by, rows, lm.SamplingFields), "allowed": rlx.Uint32s(allowed, rows, words),
		"biased": rlx.Int32s(biased, rows, maxBiases), "biases": rlx.Float32s(biases, rows, maxBiases),
	}
}

// read waits for a run and passes its tokens to the requests.
func (l *scheduler) read(f *flight) error {
	out, err := f.run.Wait(l.ctx)
	if err != nil {
		for i, s := range f.slots {
			if l.holds(s, f, i) {
				s.r.fail(err)
				s.free()
			}
		}
		return err
	}
	drawn := l.drawnOf(out)
	for i, s := range f.slots {
		r := f.of[i]
		if r.flying--; !l.holds(s, f, i) || !f.final {
			continue
		}
		if f.draft != nil {
			l.accept(s, f.draft, drawn)
		} else if drawn.push(r, i) {
			s.free()
		}
	}
	return nil
}

// draws are the results of a run, by row.
type draws struct {
	tokens        []int32
	probabilities []float32
	width         int // alternatives of a row
	alternatives  []int32
	chances       []float32
}

func (l *scheduler) drawnOf(out rlx.Outputs) draws {
	d := draws{width: l.e.options.Alternatives}
	d.tokens, _ = out["token"].Int32s()
	d.probabilities, _ = out["probability"].Float32s()
	if d.width > 0 {
		d.alternatives, _ = out["alternatives"].Int32s()
		d.chances, _ = out["chances"].Float32s()
	}
	return d
}

// push adds the token of a row to the result of a request, and reports whether that has ended.
func (d draws) push(r *request, row int) bool {
	var list []Alternative
	for i := row * d.width; i < row*d.width+r.Alternatives; i++ {
		list = append(list, Alternative{d.alternatives[i], float64(d.chances[i])})
	}
	return r.push(d.tokens[row], float64(d.probabilities[row]), list)
}

// holds reports whether a slot still holds the request that it had when a run started.
func (l *scheduler) holds(s *slot, f *flight, i int) bool {
	return s.r == f.of[i] && s.r.turn == f.turns[i]
}

// accept pushes the tokens of a verification: the correct prefix of the draft and the token after
// it.
func (l *scheduler) accept(s *slot, draft []int32, drawn draws) {
	r := s.r
	r.stats.Drafted += len(draft)
	for i := range len(draft) + 1 {
		s.past++
		r.issued++
		if i > 0 {
			r.stats.Accepted++
		}
		if drawn.push(r, i) {
			s.free()
			return
		}
		if i < len(draft) && draft[i] != drawn.tokens[i] || s.past >= l.e.options.Context {
			return
		}
	}
}

// end fails all requests and waits for the started runs.
func (l *scheduler) end(err error) {
	for _, s := range l.slots {
		if s.r != nil {
			s.r.fail(err)
		}
	}
	l.e.mu.Lock()
	l.waiting = append(l.waiting, l.e.waiting...)
	l.e.waiting = nil
	l.e.mu.Unlock()
	for _, r := range l.waiting {
		r.fail(err)
	}
	for _, f := range l.flights {
		_, _ = f.run.Wait(l.ctx) // the engine's error is set, or the error does not matter
	}
}
