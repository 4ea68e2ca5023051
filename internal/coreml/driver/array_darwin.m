// Multi-arrays: on memory of the caller, and with padded rows.
#include "internal_darwin.h"

MLMultiArray *rlx_around(const rlx_array *a, NSError **error) {
	NSMutableArray *shape = [NSMutableArray array], *strides = [NSMutableArray array];
	int64_t step = 1;
	for (int i = a->rank - 1; i >= 0; i--) {
		[shape insertObject:[NSNumber numberWithLongLong:a->dims[i]] atIndex:0];
		[strides insertObject:[NSNumber numberWithLongLong:step] atIndex:0];
		step *= a->dims[i];
	}
	return [[[MLMultiArray alloc] initWithDataPointer:a->data
	                                            shape:shape
	                                         dataType:(MLMultiArrayDataType)a->type
	                                          strides:strides
	                                      deallocator:nil
	                                            error:error] autorelease];
}

static size_t element_size(int type) { return type == RLX_FLOAT16 ? 2 : 4; }

// Elements may not be contiguous there: Core ML pads rows for its devices.
int rlx_move(MLMultiArray *there, const rlx_array *here, int write, rlx_why *why) {
	NSArray *shape = [there shape], *strides = [there strides];
	int same = there && (int)[there dataType] == here->type && (int)[shape count] == here->rank;
	for (int i = 0; same && i < here->rank; i++) same = [[shape objectAtIndex:i] longLongValue] == here->dims[i];
	if (!same) {
		snprintf(why->text, sizeof why->text, "the type of %s differs from the type in the package", here->name);
		return 1;
	}
	char *base = [there dataPointer];
	if (base == here->data) return 0; // it was written there
	size_t size = element_size(here->type), count = here->bytes / size;
	int64_t at[RLX_AXES] = {0};
	for (size_t i = 0; i < count; i++) {
		int64_t place = 0;
		for (int k = 0; k < here->rank; k++) place += at[k] * [[strides objectAtIndex:k] longLongValue];
		char *a = (char *)here->data + i * size, *b = base + place * (int64_t)size;
		memcpy(write ? b : a, write ? a : b, size);
		for (int k = here->rank - 1; k >= 0 && ++at[k] == here->dims[k]; k--) at[k] = 0;
	}
	return 0;
}
