// Package launch reads which rank of a run a process is from the environment that launchers set:
// torchrun, Slurm, Open MPI, MPICH and Kubernetes' indexed jobs. [Start] is a launcher for one machine.
package launch

import (
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// Run is the place of a process in a run of several.
type Run struct {
	Rank, Size           int
	LocalRank, LocalSize int // among the processes of this machine; 0 and 1 if the launcher does not set them
	// Address is where rank 0 listens, as "host:port"; "" under MPI on several machines, where only the
	// engine "mpi" can connect them.
	Address string
	// Token is the same on all ranks and keeps runs apart; it may be empty.
	Token string
	// Launcher names the launcher: "rlx", "torchrun", "slurm", "openmpi", "mpich", "kubernetes"; ""
	// for a process that no launcher has started.
	Launcher string
	// Engine connects the processes: [TCP] or [MPI].
	Engine string
}

// The engines that connect the processes of a run.
const (
	TCP = "tcp"
	MPI = "mpi"
)

// EngineVariable is the environment variable that names the engine of a run.
const EngineVariable = "RLX_ENGINE"

// DefaultPort is the port of rank 0 where the launcher names none.
const DefaultPort = 29477

// Environment returns the run of this process by its environment: see [From].
func Environment() (Run, error) { return From(os.Getenv) }

// From returns the run that environment variables describe. The first launcher of this list whose
// variables are set counts; without one, or with a size of 1, the process is rank 0 of 1:
//
//   - RLX_RANK, RLX_SIZE, RLX_ADDRESS and, if set, RLX_LOCAL_RANK, RLX_LOCAL_SIZE, RLX_TOKEN;
//   - torchrun, and all that set its variables: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
//     MASTER_ADDR, and MASTER_PORT, to which 1 is added: torchrun's store has that port itself;
//   - Slurm's srun: SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURM_JOB_NODELIST, SLURM_JOB_ID;
//   - Open MPI: OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE;
//   - MPICH and Intel MPI: PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS;
//   - Kubernetes: JOB_COMPLETION_INDEX, and RLX_SIZE and RLX_ADDRESS, which the job's manifest sets.
//
// RLX_ADDRESS and RLX_TOKEN count with every launcher, if set. RLX_ENGINE names the engine: by default
// it is MPI where Open MPI's or MPICH's variables count, otherwise TCP, which needs RLX_ADDRESS under mpirun on
// several machines. The error is of kind [ir.ErrAttr] and names the variable that is missing or malformed.
func From(getenv func(name string) string) (Run, error) {
	e := &environment{get: getenv}
	r := Run{Size: 1, LocalSize: 1, Engine: TCP}
	for _, l := range launchers {
		if getenv(l.rank) == "" {
			continue
		}
		r = Run{
			Launcher: l.name, Rank: e.number(l.rank, -1), Size: e.number(l.size, -1),
			LocalRank: e.number(l.localRank, 0), LocalSize: e.number(l.localSize, 1), Engine: l.engine,
		}
		if r.Size > 1 {
			l.address(e, &r)
		}
		break
	}
	if a := getenv("RLX_ADDRESS"); a != "" && r.Launcher != "" {
		r.Address = a
	}
	if t := getenv("RLX_TOKEN"); t != "" {
		r.Token = t
	}
	if engine := getenv(EngineVariable); engine != "" {
		r.Engine = engine
	}
	if e.err == nil {
		e.err = r.check()
	}
	return r, e.err
}

// check returns an error for a run that no launcher should describe.
func (r *Run) check() error {
	if r.Size < 1 || r.Rank < 0 || r.Rank >= r.Size {
		return ir.Attrf("%s says rank %d of %d; the rank must be from 0 to size-1", r.Launcher, r.Rank, r.Size)
	}
	if r.Engine != TCP && r.Engine != MPI {
		return ir.Attrf("%s is %q; it must be %q or %q", EngineVariable, r.Engine, TCP, MPI)
	}
	if r.Size == 1 || r.Engine == MPI && r.Address == "" {
		return nil
	}
	if r.Address == "" {
		return ir.Attrf("%s does not say where rank 0 listens; set RLX_ADDRESS to its host:port", r.Launcher)
	}
	if _, _, err := net.SplitHostPort(r.Address); err != nil {
		return ir.Attrf("the address of rank 0 is %q, not host:port", r.Address)
	}
	return nil
}

// launcher has the variables of a launcher.
type launcher struct {
	name, rank, size     string
	localRank, localSize string
	engine               string
	address              func(e *environment, r *Run) // sets Address and Token; the size is above 1
}

var launchers = []launcher{
	{"rlx", "RLX_RANK", "RLX_SIZE", "RLX_LOCAL_RANK", "RLX_LOCAL_SIZE", TCP, func(*environment, *Run) {}},
	{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", TCP, torchAddress},
	{"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE", TCP, slurmAddress},
	{"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", MPI, localAddress},
	{"mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", MPI, localAddress},
	{"kubernetes", "JOB_COMPLETION_INDEX", "RLX_SIZE", "", "", TCP, func(*environment, *Run) {}},
}

// environment reads variables and keeps the first error.
type environment struct {
	get func(name string) string
	err error
}

// number returns a variable as a number, or the default, -1 for a variable that must be there.
func (e *environment) number(name string, byDefault int) int {
	text := ""
	if name != "" {
		text = e.get(name)
	}
	if text == "" && byDefault >= 0 {
		return byDefault
	}
	if digits, _, found := strings.Cut(text, "("); found && name == "SLURM_NTASKS_PER_NODE" {
		text = digits // "4(x2)"
	}
	n, err := strconv.Atoi(text)
	if (err != nil || n < 0) && e.err == nil {
		e.err = ir.Attrf("the variable %s is %q; it must be a number, 0 or greater", name, text)
	}
	return n
}

func torchAddress(e *environment, r *Run) {
	host := e.get("MASTER_ADDR")
	if host == "" {
		return
	}
	const ownStore = 1 // the port of torchrun's store is taken
	r.Address = net.JoinHostPort(host, strconv.Itoa(e.number("MASTER_PORT", DefaultPort-ownStore)+ownStore))
	r.Token = e.get("TORCHELASTIC_RUN_ID") + "/" + e.get("TORCHELASTIC_RESTART_COUNT")
}

// slurmAddress has rank 0 listen on the first node, at a port that differs between jobs.
func slurmAddress(e *environment, r *Run) {
	list := e.get("SLURM_STEP_NODELIST")
	if list == "" {
		list = e.get("SLURM_JOB_NODELIST")
	}
	host := firstNode(list)
	if host == "" {
		return
	}
	job := e.number("SLURM_JOB_ID", 0)
	const first, ports = 20000, 10000
	r.Address = net.JoinHostPort(host, strconv.Itoa(first+job%ports))
	r.Token = "slurm " + strconv.Itoa(job) + "/" + e.get("SLURM_STEP_ID") + "/" + e.get("SLURM_RESTART_COUNT")
}

// firstNode returns the first host of a list such as "n[01-04,7],m3".
func firstNode(list string) string {
	open := strings.IndexByte(list, '[')
	comma := strings.IndexByte(list, ',')
	if open < 0 || comma >= 0 && comma < open {
		first, _, _ := strings.Cut(list, ",")
		return first
	}
	end := strings.IndexByte(list[open:], ']')
	if end < 0 {
		return ""
	}
	inner, tail := list[open+1:open+end], list[open+end+1:]
	suffix, _, _ := strings.Cut(tail, ",")
	return list[:open] + inner[:strings.IndexAny(inner+",", ",-")] + suffix
}

// localAddress is for launchers that do not set the address of rank 0: on this machine if all ranks
// are.
func localAddress(_ *environment, r *Run) {
	if r.LocalSize == r.Size {
		r.Address = net.JoinHostPort("127.0.0.1", strconv.Itoa(DefaultPort))
	}
}
