package rlx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/rlx-go/rlx/ir"
)

// Loop holds the options of [Fit]. Data and one of Epochs and Steps are required.
type Loop struct {
	// Data returns the batches of an epoch, from 0: equal epochs give equal batches, so that a
	// training that is resumed continues with the batch after the last one. An error ends the
	// training. The tensors of a batch may share memory with those of the next.
	Data func(epoch int) iter.Seq2[Inputs, error]
	// Epochs and Steps end the training, whichever comes first; 0 means no end.
	Epochs, Steps int
	// EpochSteps is the number of batches of an epoch, if it is known: a resumed training then
	// skips earlier epochs without reading their batches. Another number is an error at the end of an epoch.
	EpochSteps int
	// Every is the number of steps between reports; 0 means one at the end of each epoch. There is
	// one after the last step, too.
	Every int
	// Eval evaluates the model at each report. With several ranks the means are over the batches of all.
	Eval Evaluation
	// Stop ends the training when the evaluation no longer improves.
	Stop EarlyStop
	// Save writes checkpoints.
	Save Checkpoints
	// Recover goes on after the device is lost; nil ends the training with the error.
	Recover *Recovery
	// Callbacks are called with each report, in order. [ErrStop] ends the training without an
	// error, any other error ends it with that.
	Callbacks []func(r Report) error
	// Progress is where reports are written: a bar on a terminal and lines elsewhere; nil means
	// nowhere.
	Progress io.Writer
}

// Evaluation is an entry of the program that measures the model.
type Evaluation struct {
	// Entry is the name of the entry; "" means no evaluation.
	Entry string
	// Data returns the batches to measure.
	Data func() iter.Seq2[Inputs, error]
	// Weight names an output, of rank 0, that weights the other outputs of a batch in the
	// mean: the number of examples, for a last batch that is padded. A batch of weight 0 counts for nothing, also if its
	// outputs are NaN. "" weights all batches alike.
	Weight string
}

// EarlyStop ends a training whose metric no longer improves.
type EarlyStop struct {
	// Patience is the number of evaluations in a row without an improvement after which the
	// training ends; 0 means never. Those before a checkpoint count in a resumed training.
	Patience int
	// Metric names an output or a metric of the evaluation ([Report.Eval]); "" means "loss". It also
	// chooses the best checkpoint.
	Metric string
	// Larger is true if larger values are better.
	Larger bool
	// MinDelta is the smallest difference that is an improvement.
	MinDelta float64
}

// Report describes a training between two steps.
type Report struct {
	Step, Steps   int     // steps done, those of a checkpoint included, and steps to do; 0 if that is unknown
	Epoch, Epochs int     // epochs done, and epochs to do; 0 if that is unknown
	Loss          float64 // the mean over the steps since the last report; NaN without one
	Rate          float64 // steps per second since the last report
	// Throughput is the number of examples per second since the last report, those of all ranks: the
	// rows of the first axis of the inputs, of the most of them if they differ.
	Throughput float64
	// Metrics are the measurements of the steps since the last report: means ([nn.Metric], [nn.Perplexity],
	// [optim.Options.MeasureNorm]), areas ([nn.AUC]), the errors of [nn.Regression] and of [nn.Calibration], and the scores of
	// [nn.Confusion]. Those in which no step counted anything are left out.
	Metrics map[string]float64
	// Confusion are the confusion matrices since the last report ([nn.Confusion]): the number of
	// examples by label and prediction.
	Confusion map[string][][]float64
	// Eval are the means of the outputs of the evaluation, and the metrics of its entry ([nn.Metric], [nn.Confusion] and
	// the like) over all of its batches; nil without one.
	Eval map[string]float64
	// EvalConfusion are the confusion matrices of the evaluation.
	EvalConfusion map[string][][]float64
	// Best is set if the evaluation is the best so far.
	Best bool
	// Done is set in the last report.
	Done bool
}

// ErrStop ends the training where a callback of [Loop] returns it.
var ErrStop = errors.New("the training is stopped")

// Fit trains until the loop ends and returns the last report. Steps that the trainer did before,
// those of a checkpoint included, count: Fit skips their batches. Errors end it, between steps, a lost device
// ([native.ErrLost]) included without [Loop.Recover];
// they name the step. They are those of [Trainer.Step] and [Program.Call], of data and callbacks,
// that of ctx when it is done, and of kind [ir.ErrAttr] or [ir.ErrName] for a loop that is
// incomplete.
func Fit(ctx context.Context, t *Trainer, l Loop) (Report, error) {
	f := &fit{t: t, loop: l, began: time.Now()}
	if err := f.check(); err != nil {
		return Report{}, err
	}
	metadata, err := f.loop.Save.resume(ctx, t)
	if err != nil {
		return Report{}, err
	}
	f.stop.resume(f.loop.Save, metadata)
	f.reported, f.saved, f.before = t.Steps(), -1, lossSumOf(metadata)
	f.counted = -1
	if (f.stop.known || f.stop.worse > 0) && f.before.steps == 0 {
		f.counted = t.Steps()
	}
	err = f.train(ctx)
	if err != nil && !errors.Is(err, ErrDiverged) { // which names the step of the loss, not the last one
		err = fmt.Errorf("step %d: %w", t.Steps(), err)
	}
	return f.last, err
}

// fit is a training in progress.
type fit struct {
	t        *Trainer
	loop     Loop
	epoch    int     // epochs done
	reported int     // the step of the last report, or of the checkpoint that the training resumed from
	before   lossSum // of the steps between the last report and that checkpoint
	rows     int     // examples since the last report
	began    time.Time
	last     Report
	stop     stopper
	ended    bool
	saved    int     // the step of the last checkpoint
	counted  int     // the step of an evaluation that the stopper has counted before a resume, -1 for none
	keeper   *keeper // nil without Recover
}

func (f *fit) check() error {
	l := &f.loop
	if f.t == nil || f.t.program == nil {
		return ir.Errorf(ir.ErrGraph, "no trainer given")
	}
	for i, call := range l.Callbacks {
		if call == nil {
			return ir.Attrf("Callbacks[%d] is nil: it must be a function", i)
		}
	}
	if l.Data == nil {
		return ir.Attrf("Data is nil: it must be given")
	}
	if l.Epochs < 0 || l.Steps < 0 || l.Epochs == 0 && l.Steps == 0 {
		return ir.Attrf("Epochs is %d and Steps %d: one must be positive and none negative", l.Epochs, l.Steps)
	}
	if l.Every < 0 || l.EpochSteps < 0 || l.Stop.Patience < 0 || l.Stop.MinDelta < 0 {
		return ir.Attrf("Every is %d, EpochSteps %d, Patience %d and MinDelta %v: none must be negative", l.Every, l.EpochSteps, l.Stop.Patience, l.Stop.MinDelta)
	}
	if l.Eval.Entry == "" && l.Stop != (EarlyStop{}) {
		return ir.Attrf("Stop is %+v: it must be zero without an evaluation", l.Stop)
	}
	if l.Eval.Entry != "" && l.Eval.Data == nil {
		return ir.Attrf("Data of the evaluation is nil: it must be given")
	}
	f.stop.named = l.Stop.Metric != ""
	if !f.stop.named {
		l.Stop.Metric = "loss"
	}
	if slots := f.t.Program().Slots(l.Eval.Entry); l.Eval.Entry != "" && len(slots) == 0 {
		return ir.Errorf(ir.ErrName, "Entry is %q: it must be an entry of the program, one of %q", l.Eval.Entry, f.t.Program().Entries())
	}
	f.stop.EarlyStop = l.Stop
	if err := f.checkRecovery(); err != nil {
		return err
	}
	return l.Save.check()
}

// run trains epoch by epoch.
func (f *fit) run(ctx context.Context) error {
	skip := f.t.Steps()
	if n := f.loop.EpochSteps; n > 0 {
		f.epoch, skip = skip/n, skip%n
	}
	for !f.complete() {
		read, batches := 0, f.loop.Data(f.epoch)
		if batches == nil {
			return ir.Attrf("Data returns nil for epoch %d: it must return an iterator", f.epoch)
		}
		for batch, err := range batches {
			if err != nil {
				return fmt.Errorf("batch %d of epoch %d: %w", read, f.epoch, err)
			}
			if read++; read <= skip {
				continue
			}
			if err := f.step(ctx, batch); err != nil || f.ended {
				return err
			}
		}
		if read == 0 {
			return ir.Attrf("epoch %d has no batches: there must be one or more", f.epoch)
		}
		if n := f.loop.EpochSteps; n > 0 && read != n { // a resumed training would go on with other batches
			return ir.Attrf("EpochSteps is %d and epoch %d has %d batches: it must be their number", n, f.epoch, read)
		}
		skip = max(0, skip-read)
		f.epoch++
		if f.loop.Every == 0 && f.t.Steps() > f.reported && !f.complete() {
			if err := f.report(ctx, false); err != nil || f.ended {
				return err
			}
		}
	}
	if f.last.Step == f.t.Steps() && f.last.Step > 0 { // reported just now
		f.last.Done, f.last.Epoch = true, f.epoch
		if err := f.keepLast(ctx); err != nil {
			return err
		}
		return f.notify(f.last)
	}
	return f.report(ctx, true)
}

// complete reports whether all epochs or steps are done, or the training was stopped before it was resumed.
func (f *fit) complete() bool {
	l := f.loop
	return f.stop.exhausted() || l.Epochs > 0 && f.epoch >= l.Epochs || l.Steps > 0 && f.t.Steps() >= l.Steps
}

// step trains one batch, saves and reports if it is time, and ends with the last step.
func (f *fit) step(ctx context.Context, batch Inputs) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.keeper != nil && f.keeper.isDue(f.t.Steps()) {
		if err := f.copy(ctx); err != nil {
			return err
		}
	}
	if err := f.t.Step(ctx, batch); err != nil {
		return err
	}
	f.rows += rowsIn(batch)
	n := f.t.Steps()
	if f.loop.Steps > 0 && n >= f.loop.Steps {
		return f.report(ctx, true)
	}
	if f.loop.Every > 0 && n%f.loop.Every == 0 {
		return f.report(ctx, false)
	}
	if f.isDue(n) {
		return f.save(ctx)
	}
	return nil
}

// save writes a checkpoint between two reports: it has the sum of the losses since the last one, so that the next
// report of a resumed training has the mean over all of its steps.
func (f *fit) save(ctx context.Context) error {
	losses, err := f.lossSum(ctx)
	if err != nil {
		return err
	}
	return f.write(ctx, losses.metadata(f.stop.metadata()))
}

// isDue reports whether there is a checkpoint of a step.
func (f *fit) isDue(step int) bool { return f.loop.Save.Every > 0 && step%f.loop.Save.Every == 0 }

// report measures, saves, and calls back. Afterwards ended is true if the training is over.
func (f *fit) report(ctx context.Context, done bool) error {
	r := Report{Step: f.t.Steps(), Steps: f.loop.Steps, Epoch: f.epoch, Epochs: f.loop.Epochs}
	if r.Steps == 0 {
		r.Steps = f.loop.EpochSteps * f.loop.Epochs
	}
	losses, err := f.lossSum(ctx)
	if err != nil {
		return err
	}
	r.Loss = losses.sum / float64(losses.steps) // NaN for none
	rows, err := f.t.overRanks(ctx, nil, float64(f.rows))
	if err != nil {
		return err
	}
	if seconds := time.Since(f.began).Seconds(); seconds > 0 {
		r.Rate, r.Throughput = float64(r.Step-f.reported)/seconds, rows/seconds
	}
	m, err := f.t.takeMetrics(ctx, false)
	if err != nil {
		return err
	}
	r.Metrics, r.Confusion = m.metrics, m.confusion
	if f.loop.Eval.Entry != "" {
		if r.Eval, r.EvalConfusion, err = f.loop.Eval.measure(ctx, f.t); err != nil {
			return err
		}
		if r.Best, err = f.improves(ctx, r.Eval); err != nil {
			return err
		}
	}
	r.Done = done || f.stop.exhausted()
	f.ended, f.last = r.Done, r
	if err := f.keep(ctx, r); err != nil {
		return err
	}
	if err := f.notify(r); err != nil {
		return err
	}
	if f.ended { // perhaps by a callback
		if err := f.keepLast(ctx); err != nil {
			return err
		}
	}
	f.reported, f.before, f.rows, f.began = r.Step, lossSum{}, 0, time.Now()
	return nil
}

// improves reports whether an evaluation is the best so far. It writes the best checkpoint. Parameters that are not finite
// are never the best: the metric may hide it, as accuracy does.
func (f *fit) improves(ctx context.Context, eval map[string]float64) (bool, error) {
	before := f.stop
	best, err := f.stop.better(eval)
	if f.counted == f.t.Steps() { // as the checkpoint of this step was written
		f.stop = before
		return err == nil && before.worse == 0 && before.known && before.best == eval[before.Metric], err
	}
	if err != nil || !best || f.loop.Save.Folder == "" {
		return best, err
	}
	values, broken, err := f.finite(ctx)
	switch {
	case err != nil:
		return false, err
	case broken != "":
		f.stop = before
		f.stop.worse++
		return false, nil
	case f.t.rank() > 0:
		return true, nil
	}
	return true, f.loop.Save.writeBest(values, f.stop.best)
}

// keep writes the checkpoint of a report. It has the evaluation, so that a resumed training counts it.
func (f *fit) keep(ctx context.Context, r Report) error {
	if r.Done || f.loop.Save.Every == 0 || f.isDue(r.Step) {
		return f.write(ctx, f.stop.metadata())
	}
	return nil
}

// keepLast writes the checkpoint of the last step, if it has none.
func (f *fit) keepLast(ctx context.Context) error {
	if f.saved == f.t.Steps() {
		return nil
	}
	return f.write(ctx, f.stop.metadata())
}

// write writes the checkpoint of this step with metadata, unless a parameter is not finite.
func (f *fit) write(ctx context.Context, metadata map[string]string) error {
	f.saved = f.t.Steps()
	if f.loop.Save.Folder == "" {
		return nil
	}
	values, broken, err := f.finite(ctx)
	switch {
	case err != nil || f.t.rank() > 0:
		return err
	case broken == "":
		return f.loop.Save.write(f.t.Steps(), values, metadata)
	case f.loop.Progress == nil:
		return nil
	}
	return writeLine(f.loop.Progress, fmt.Sprintf("step %d: no checkpoint is written: parameter %q is not finite", f.t.Steps(), broken))
}

// notify passes a report to the callbacks and to the writer.
func (f *fit) notify(r Report) error {
	if err := writeProgress(f.loop.Progress, r); err != nil {
		return err
	}
	for _, call := range f.loop.Callbacks {
		err := call(r)
		if errors.Is(err, ErrStop) {
			f.ended = true
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lossSum returns the sum of the losses since the last report.
func (f *fit) lossSum(ctx context.Context) (lossSum, error) {
	losses, err := f.t.Losses(ctx)
	if err != nil {
		return lossSum{}, err
	}
	s := f.before
	for _, x := range losses[max(0, len(losses)-(f.t.Steps()-f.reported)):] {
		s.sum, s.steps = s.sum+float64(x), s.steps+1
	}
	return s, nil
}

// measure returns the means of the outputs of rank 0 over all batches of all ranks, with the metrics that the entry
// keeps in states, and its confusion matrices.
func (e Evaluation) measure(ctx context.Context, t *Trainer) (map[string]float64, map[string][][]float64, error) {
	means, err := e.means(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	m, err := t.takeMetrics(ctx, true)
	for name, v := range m.metrics {
		if _, is := means[name]; !is { // an output has its name
			means[name] = v
		}
	}
	return means, m.confusion, err
}

// means returns the means of the outputs of rank 0 over all batches of all ranks.
func (e Evaluation) means(ctx context.Context, t *Trainer) (map[string]float64, error) {
	sums, total := map[string]float64{}, 0.
	batches := e.Data()
	if batches == nil {
		return nil, ir.Attrf("Data of the evaluation returns nil: it must return an iterator")
	}
	for batch, err := range batches {
		if err != nil {
			return nil, fmt.Errorf("evaluation: %w", err)
		}
		out, err := t.Program().Call(ctx, e.Entry, batch)
		if err != nil {
			return nil, fmt.Errorf("evaluation: %w", err)
		}
		values := map[string]float64{}
		for name, x := range out {
			if v, ok := scalar(x); ok {
				values[name] = v
			}
		}
		weight := 1.
		if e.Weight != "" {
			var ok bool
			if weight, ok = values[e.Weight]; !ok {
				return nil, ir.Errorf(ir.ErrName, "Weight is %q: it must be an output of rank 0 of entry %q, one of %q", e.Weight, e.Entry, slices.Sorted(maps.Keys(values)))
			}
			delete(values, e.Weight)
		}
		total += weight
		for name, v := range values {
			if weight == 0 {
				v = 0 // the mean of no examples is NaN
			}
			sums[name] += weight * v
		}
	}
	total, err := t.overRanks(ctx, sums, total)
	if err == nil && total == 0 {
		err = ir.Attrf("the evaluation has no batches, or none of a weight: there must be one or more")
	}
	for name := range sums {
		sums[name] /= total
	}
	return sums, err
}

// scalar returns the value of a tensor of rank 0 of a real type.
func scalar(x Tensor) (float64, bool) {
	a, err := x.Array()
	if err != nil || len(x.Dims) != 0 || x.DType.IsComplex() {
		return 0, false
	}
	return a.Float(0), true
}
