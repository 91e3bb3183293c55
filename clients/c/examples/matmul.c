/*
 * matmul.c - multiplies two matrices by a gemmd daemon, and says how fast that was.
 *
 * Where gemmd is installed (cmake --install, ldconfig):
 *
 *   cc matmul.c $(pkg-config --cflags --libs gemmd) && ./a.out http://localhost:8080
 */
#include <gemmd.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 0, 1, 1, 1};
    struct gemmd_matrix left = {.dtype = GEMMD_F32, .ndim = 2, .dim = {2, 3}, .data = a};
    struct gemmd_matrix right = {.dtype = GEMMD_F32, .ndim = 2, .dim = {3, 2}, .data = b};
    struct gemmd_options options = {.url = argc > 1 ? argv[1] : NULL};
    struct gemmd_client *client = NULL;
    struct gemmd_result product = {0};
    struct gemmd_error err;
    double us;

    if (gemmd_client_new(&options, &client, &err) != GEMMD_OK ||
        gemmd_matmul(client, &left, &right, NULL, NULL, &product, &err) != GEMMD_OK) {
        fprintf(stderr, "%s\n", err.detail);
        gemmd_client_free(client);
        return 1;
    }
    for (uint64_t row = 0; row < product.dim[0]; row++)
        for (uint64_t column = 0; column < product.dim[1]; column++)
            printf("%g%c", ((const float *)product.data)[row * product.dim[1] + column],
                   column + 1 < product.dim[1] ? ' ' : '\n');
    if (gemmd_account_number(product.account, "us.total", &us))
        fprintf(stderr, "in %g us\n", us);
    gemmd_result_free(&product);
    gemmd_client_free(client);
    return 0;
}
