package driver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnavailable says that the machine has no CUDA driver, no NVRTC or no
// device.
var ErrUnavailable = errors.New("CUDA is not available")

// Error is a call that failed.
type Error struct {
	Call   string // of the driver's, NVRTC's or cuBLASLt's API
	Code   int    // what it returned
	Name   string // "CUDA_ERROR_OUT_OF_MEMORY"
	Text   string // the driver's words, or NVRTC's log
	Kernel string // the kernel it was for, "" where it was for none
}

// Error returns "kernel map_add: cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1):
// invalid argument".
func (e *Error) Error() string {
	kernel := ""
	if e.Kernel != "" {
		kernel = "kernel " + e.Kernel + ": "
	}
	return fmt.Sprintf("%s%s: %s (%d): %s", kernel, e.Call, e.Name, e.Code, e.Text)
}

// OutOfMemory reports whether the device had too little memory for the call;
// everything else goes on.
func (e *Error) OutOfMemory() bool { return e.Code == 2 && e.ofDriver() }

// Lost reports whether the device is of no more use to this process: an illegal
// access, a failed launch, a hardware error. All memory on it is gone, and the
// driver refuses to open it again.
func (e *Error) Lost() bool { return e.ofDriver() && slices.Contains(losses, e.Code) }

// Refused reports whether NVRTC or the driver does not take some code: a name that it does
// not know, a version or an architecture that is not its own.
func (e *Error) Refused() bool {
	return e.Call == nvrtcCall || e.ofDriver() && slices.Contains(refusals, e.Code)
}

// refusals are the codes of code that is not taken.
var refusals = []int{
	200, 209, // invalid image, none for the device
	218, 221, 222, 223, // invalid PTX, no compiler for it, unsupported version, compiling disabled
	300, 302, // invalid source, a symbol that is not found
}

// ErrNoAlgorithm says that cuBLASLt knows no way to compute a product.
var ErrNoAlgorithm = errors.New("cuBLASLt has no algorithm for the product")

// nvrtcCall and what begins with blasCalls are calls whose codes are not the
// driver's.
const nvrtcCall, blasCalls = "nvrtcCompileProgram", "cublasLt"

func (e *Error) ofDriver() bool { return e.Call != nvrtcCall && !strings.HasPrefix(e.Call, blasCalls) }

// losses are the codes after which the driver refuses all further work of the
// process.
var losses = []int{
	4,        // deinitialized
	46,       // device unavailable
	201, 709, // no such context, context destroyed
	214, 220, 226, // uncorrectable ECC error, NVLink, contained memory error
	700,           // illegal address
	702,           // launch timeout
	710,           // assertion on the device
	714, 715, 716, // hardware stack error, illegal instruction, misaligned address
	717, 718, 719, // invalid address space, invalid program counter, launch failed
	721, // tensor memory leak
	999, // unknown
}

// In returns err with the name of a kernel, where it is an [*Error].
func In(kernel string, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	named := *e
	named.Kernel = kernel
	return &named
}
