// The header in C++: it compiles with all warnings, and its functions have the names of C.
#include <pumice.h>

#include <cstdint>
#include <cstdio>
#include <memory>

struct Close {
    void operator()(pumice_dataset *dataset) const { pumice_dataset_close(dataset); }
};

int main(int argc, char **argv)
{
    pumice_file *file = nullptr;
    if (argc != 2 || pumice_open(argv[1], PUMICE_CREATE, &file) != PUMICE_OK)
        return 1;
    const std::uint64_t shape[] = {2, 3};
    const double        values[] = {1, 2, 3, 4, 5, 6};
    pumice_dataset     *made = nullptr;
    if (pumice_dataset_create(file, "x", PUMICE_F64, 2, shape, nullptr, &made) != PUMICE_OK)
        return 2;
    {
        std::unique_ptr<pumice_dataset, Close> dataset(made);
        if (pumice_write(dataset.get(), nullptr, PUMICE_F64, 6, values) != PUMICE_OK)
            return 3;
    }
    if (pumice_close(file) != PUMICE_OK) {
        std::fprintf(stderr, "%s\n", pumice_error_message());
        return 4;
    }
    return 0;
}
