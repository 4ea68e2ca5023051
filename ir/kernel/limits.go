package kernel

// DeviceLimits are what a device allows one kernel.
type DeviceLimits struct {
	StorageArrays  int    // bound to one kernel
	ArrayBytes     int    // of a storage array
	SharedBytes    int    // of all shared arrays of a kernel together
	PrivateBytes   int    // of all private arrays of a kernel together
	WorkgroupSize  [3]int // along each axis
	WorkgroupTotal int    // threads
	Groups         int    // along each axis
}

// WebGPULimits returns what every WebGPU device allows.
func WebGPULimits() DeviceLimits {
	return DeviceLimits{
		StorageArrays:  8,
		ArrayBytes:     128 << 20,
		SharedBytes:    16 << 10,
		PrivateBytes:   8 << 10,
		WorkgroupSize:  [3]int{256, 256, 64},
		WorkgroupTotal: 256,
		Groups:         65535,
	}
}

// Check returns a *CheckError that names the first limit that k exceeds. Sizes
// are those in device memory, see [DeviceSize].
func (l DeviceLimits) Check(k *Kernel) error {
	c := checker{k: k}
	storage, shared, private := 0, 0, 0
	for _, a := range k.Arrays {
		bytes := a.Bytes()
		switch a.Space {
		case Storage:
			storage++
			if bytes > l.ArrayBytes {
				return c.fail("array %s takes %d bytes, over the limit of %d", a.Name, bytes, l.ArrayBytes)
			}
		case Shared:
			shared += bytes
		case Private:
			private += bytes
		}
	}
	for _, n := range []struct {
		what      string
		have, max int
	}{
		{"storage arrays", storage, l.StorageArrays},
		{"bytes of shared memory", shared, l.SharedBytes},
		{"bytes of private memory", private, l.PrivateBytes},
		{"threads in a workgroup", k.Threads(), l.WorkgroupTotal},
		{"threads along x", k.Workgroup[0], l.WorkgroupSize[0]},
		{"threads along y", k.Workgroup[1], l.WorkgroupSize[1]},
		{"threads along z", k.Workgroup[2], l.WorkgroupSize[2]},
		{"workgroups along an axis", max(k.Groups[0], k.Groups[1], k.Groups[2]), l.Groups},
	} {
		if n.have > n.max {
			return c.fail("%d %s, over the limit of %d", n.have, n.what, n.max)
		}
	}
	return nil
}

// SharedBytes is the shared memory that the kernel's arrays take.
func (k *Kernel) SharedBytes() int {
	n := 0
	for _, a := range k.Arrays {
		if a.Space == Shared {
			n += a.Bytes()
		}
	}
	return n
}

// Bytes returns the device memory that the array takes, see [DeviceSize].
func (a Array) Bytes() int { return DeviceSize(a.DType) * a.Width * a.Len }
