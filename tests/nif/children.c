/* Children of a library's own, beside the programs of ports. */
#include <erl_nif.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The status of a command that is run by system(3). */
static ERL_NIF_TERM run(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    char line[256];
    int status;
    if (enif_get_string(env, argv[0], line, sizeof(line), ERL_NIF_LATIN1) <= 0) return enif_make_badarg(env);
    status = system(line);
    return enif_make_int(env, status < 0 ? status : WEXITSTATUS(status));
}

/* A child that ends with that code by itself; its number. */
static ERL_NIF_TERM start(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    int code;
    pid_t pid;
    if (!enif_get_int(env, argv[0], &code)) return enif_make_badarg(env);
    pid = fork();
    if (pid == 0) _exit(code);
    return enif_make_int(env, pid);
}

/* The code that it ended with, or -1: somebody else has waited for it. */
static ERL_NIF_TERM wait_for(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    int pid, status;
    if (!enif_get_int(env, argv[0], &pid)) return enif_make_badarg(env);
    return enif_make_int(env, waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : -1);
}

static ErlNifFunc functions[] = {
    {"run", 1, run, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"start", 1, start, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"wait_for", 1, wait_for, ERL_NIF_DIRTY_JOB_IO_BOUND},
};

ERL_NIF_INIT(nif_child_processes, functions, NULL, NULL, NULL, NULL)
